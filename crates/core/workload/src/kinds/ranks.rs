use anabranch_settings::{InvalidValue, Raw, Setting, ValueSchema};

/// Number of participating hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ranks {
    All,
    Number(u32),
}

impl Setting for Ranks {
    fn expected() -> String {
        "\"all\" or a number of hosts, 2 or more".into()
    }
    fn schema() -> ValueSchema {
        ValueSchema::Either(vec![ValueSchema::Words(vec!["all"]), ValueSchema::Whole])
    }
    fn read(raw: &Raw) -> Result<Self, InvalidValue> {
        match raw {
            Raw::Text(word) if word == "all" => Ok(Ranks::All),
            Raw::Text(_) => Err(InvalidValue::of::<Self>(raw).near(["all"])),
            _ => match u32::read(raw) {
                Ok(number) if number >= 2 => Ok(Ranks::Number(number)),
                _ => Err(InvalidValue::of::<Self>(raw)),
            },
        }
    }
    fn write(&self) -> Raw {
        match self {
            Ranks::All => Raw::Text("all".into()),
            Ranks::Number(number) => number.write(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_all_or_two_and_more() {
        assert!(Ranks::read(&Raw::Text("al".into())).unwrap_err().to_string().contains("did you mean `all`"));
        assert!(Ranks::read(&Raw::Int(1)).is_err());
        assert_eq!(Ranks::read(&Raw::Int(2)), Ok(Ranks::Number(2)));
    }
}
