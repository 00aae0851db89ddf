//! Properties of all schemes, and PRIME against a naive model.

mod every_guided_scheme;
mod every_scheme;
mod prime_reference;
mod prime_theorem;
mod round_robin;
mod state;

use anabranch_settings::{Raw, Registry};

/// The scheme with its defaults, and with each choice parameter at each of its values.
fn variants<Scheme: Registry>(name: &str) -> Vec<Scheme> {
    let mut all = vec![Scheme::named(name).unwrap()];
    for parameter in all[0].parameters().documentation() {
        let Raw::Text(_) = parameter.default else { continue };
        for word in parameter.expected.split('"').skip(1).step_by(2) {
            let mut other = Scheme::named(name).unwrap();
            if other.parameters_mut().set(parameter.name, &Raw::Text(word.into())).is_ok() {
                all.push(other);
            }
        }
    }
    all
}
