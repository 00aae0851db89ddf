//! Marking rules of ports: state machines that decide which data packets are marked (ECN).
//!
//! To add one, write a file with `pub(super) const ABOUT: About`, parameters, and a type that implements [`MarkingRule`];
//! name them in the list below.

mod pi;
mod red;
mod rule;

pub use pi::{Pi, PiParameters, PiState};
pub use red::{Red, RedParameters};
pub use rule::{MarkedQueue, MarkingCapabilities, MarkingRule, PortSizes};

use anabranch_settings::registry;

macro_rules! marking_rules {
    ($($module:ident $rule:ident $parameters:ident,)*) => {
        registry! {
            /// A marking rule and its parameters, `[fabric.<name>]`.
            pub enum MarkingParameters("marking rule"): pub dyn MarkingCapabilities in self {
                $($module $rule $parameters,)*
            }
        }

        /// The marking rule of a port with its constants.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Marking {
            $(
                #[doc = concat!("See the module `", stringify!($module), "`.")]
                $rule($rule),
            )*
        }

        /// State of the rule of all queues; no memory for a rule without state.
        #[derive(Clone, Debug)]
        pub enum MarkingStates {
            $(
                #[doc = concat!("See the module `", stringify!($module), "`.")]
                $rule(Vec<<$rule as MarkingRule>::State>),
            )*
        }

        impl Marking {
            pub fn new(parameters: &MarkingParameters, port: &PortSizes) -> Self {
                match parameters {
                    $(MarkingParameters::$rule(it) => Marking::$rule(MarkingRule::new(it, port)),)*
                }
            }

            /// Returns the bytes up to which no packet is marked.
            pub fn floor(&self) -> u32 {
                match self { $(Marking::$rule(rule) => rule.floor(),)* }
            }

            /// Returns the bytes above which every packet is marked, if there are such.
            pub fn ceiling(&self) -> Option<u32> {
                match self { $(Marking::$rule(rule) => rule.ceiling(),)* }
            }

            /// Returns the rule of a slowed link, with all bytes scaled.
            #[must_use]
            pub fn scaled(&self, scale: impl Fn(u32) -> u32) -> Self {
                match self { $(Marking::$rule(rule) => Marking::$rule(rule.scaled(scale)),)* }
            }

            /// Returns `true` if [`MarkingStates::held`] must be called before every change of a queue.
            pub fn is_sampled(&self) -> bool {
                match self { $(Marking::$rule(_) => <$rule as MarkingRule>::IS_SAMPLED,)* }
            }

            pub fn states(&self, queues: usize) -> MarkingStates {
                match self { $(Marking::$rule(_) => MarkingStates::$rule(vec![Default::default(); queues]),)* }
            }
        }

        impl MarkingStates {
            /// Notes that queue `at` held `bytes` up to `time`, and changes then.
            pub fn held(&mut self, at: usize, rule: &Marking, bytes: u32, time: u64) {
                match (self, rule) {
                    $((Self::$rule(states), Marking::$rule(rule)) => rule.held(&mut states[at], bytes, time),)*
                    _ => unreachable!("a run has one marking rule"),
                }
            }

            /// Returns `true` if a packet is marked: see [`MarkingRule::marks`].
            #[inline(always)]
            pub fn marks(
                &mut self,
                at: impl FnOnce() -> (u8, usize),
                rule: &Marking,
                queue: &MarkedQueue,
                draw: impl FnOnce() -> f64,
            ) -> bool {
                match (self, rule) {
                    $((Self::$rule(states), Marking::$rule(rule)) => rule.marks(states, at, queue, draw),)*
                    _ => unreachable!("a run has one marking rule"),
                }
            }

            /// Returns the bytes of the states.
            pub fn memory(&self) -> usize {
                match self { $(Self::$rule(states) => std::mem::size_of_val(&states[..]),)* }
            }
        }
    };
}

marking_rules! {
    red Red RedParameters,
    pi Pi PiParameters,
}
