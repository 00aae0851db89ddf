//! State per flow or trigger: listed ones have it throughout, those of templates while their group runs.

use anabranch_workload::{FlowSet, GroupTemplate, TemplatePlace};

#[derive(Clone, Debug)]
enum Page<T> {
    /// No flow of the group has a state yet.
    Untouched,
    Open(Box<[T]>),
    Ended,
}

/// State per number of a flow or a trigger.
#[derive(Clone, Debug)]
pub(crate) struct FlowTable<T> {
    listed: Vec<T>,
    /// Per template: first number, numbers of a group, and a page per group.
    templates: Vec<(u32, u32, Vec<Page<T>>)>,
    /// State of a number without a state yet, and of one whose group has ended.
    initial: T,
    ended: T,
}

impl<T: Copy> FlowTable<T> {
    pub(crate) fn of_flows(set: &FlowSet, initial: T, ended: T) -> Self {
        let of = |template: &GroupTemplate| (template.first_flow, template.flows_per_group());
        Self::new(set, set.flows.len(), of, initial, ended)
    }

    pub(crate) fn of_triggers(set: &FlowSet, initial: T) -> Self {
        let of = |template: &GroupTemplate| (template.first_trigger, template.triggers_per_group());
        Self::new(set, set.triggers.len(), of, initial, initial)
    }

    fn new(set: &FlowSet, listed: usize, of: fn(&GroupTemplate) -> (u32, u32), initial: T, ended: T) -> Self {
        let pages = |template: &GroupTemplate| {
            let (first, per_group) = of(template);
            (first, per_group, vec![Page::Untouched; template.groups() as usize])
        };
        let templates = set.templates.iter().map(pages).collect();
        FlowTable { listed: vec![initial; listed], templates, initial, ended }
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> T {
        match self.listed.get(number as usize) {
            Some(state) => *state,
            None => self.of_template(number),
        }
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, number: u32) -> &mut T {
        if (number as usize) < self.listed.len() { &mut self.listed[number as usize] } else { self.open(number) }
    }

    fn place(&self, number: u32) -> TemplatePlace {
        let template = self.templates.iter().rposition(|(first, ..)| *first <= number).expect("a number of the set");
        let (first, per_group, _) = &self.templates[template];
        TemplatePlace { template, group: (number - first) / per_group, number: (number - first) % per_group }
    }

    #[cold]
    fn of_template(&self, number: u32) -> T {
        let TemplatePlace { template, group, number } = self.place(number);
        match &self.templates[template].2[group as usize] {
            Page::Untouched => self.initial,
            Page::Open(states) => states[number as usize],
            Page::Ended => self.ended,
        }
    }

    #[cold]
    fn open(&mut self, number: u32) -> &mut T {
        let TemplatePlace { template, group, number } = self.place(number);
        let (_, per_group, pages) = &mut self.templates[template];
        let page = &mut pages[group as usize];
        if matches!(page, Page::Untouched) {
            *page = Page::Open(vec![self.initial; *per_group as usize].into());
        }
        match page {
            Page::Open(states) => &mut states[number as usize],
            Page::Untouched | Page::Ended => panic!("group {group} of a job is used after its end"),
        }
    }

    /// Releases the states of a group that has ended.
    pub(crate) fn end(&mut self, template: usize, group: u32) {
        self.templates[template].2[group as usize] = Page::Ended;
    }

    /// Returns `true` if a group has states.
    pub(crate) fn is_open(&self, template: usize, group: u32) -> bool {
        matches!(self.templates[template].2[group as usize], Page::Open(_))
    }

    pub(crate) fn has_ended(&self, template: usize, group: u32) -> bool {
        matches!(self.templates[template].2[group as usize], Page::Ended)
    }

    /// Yields the numbers that have a state, in order.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        let of_template = |(first, per_group, pages): &'_ (u32, u32, Vec<Page<T>>)| {
            let (first, per_group) = (*first, *per_group);
            let open: Vec<u32> =
                (0..).zip(pages).filter_map(|(group, page)| matches!(page, Page::Open(_)).then_some(group)).collect();
            open.into_iter().flat_map(move |group| {
                let from = first + group * per_group;
                from..from + per_group
            })
        };
        (0..self.listed.len() as u32).chain(self.templates.iter().flat_map(of_template))
    }

    pub(crate) fn memory(&self) -> usize {
        let pages = |(_, per_group, pages): &(u32, u32, Vec<Page<T>>)| {
            let open = pages.iter().filter(|page| matches!(page, Page::Open(_))).count();
            open * *per_group as usize * size_of::<T>() + pages.capacity() * size_of::<Page<T>>()
        };
        self.listed.capacity() * size_of::<T>() + self.templates.iter().map(pages).sum::<usize>()
    }
}
