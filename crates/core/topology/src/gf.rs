//! Small finite fields of prime-power order: the arithmetic of Slim Fly.
//!
//! Digits of an element to the base p are the coefficients of a polynomial, lowest first. Products are reduced by the first
//! monic polynomial of degree n that leaves no zero divisors, so numbering and generators are the same everywhere.

pub(crate) struct Field {
    order: u32,
    sums: Vec<u16>,
    products: Vec<u16>,
}

/// Returns the prime p and the exponent n with p^n = `order`.
pub(crate) fn prime_power(order: u32) -> Option<(u32, u32)> {
    let prime = (2..=order).find(|divisor| order.is_multiple_of(*divisor))?;
    let (mut rest, mut exponent) = (order, 0);
    while rest.is_multiple_of(prime) {
        rest /= prime;
        exponent += 1;
    }
    (rest == 1).then_some((prime, exponent))
}

impl Field {
    /// Creates the field of this order, at most 2^16; `None` if the order is no prime power.
    pub(crate) fn new(order: u32) -> Option<Field> {
        let (prime, degree) = prime_power(order).filter(|_| order <= 1 << 16)?;
        let digits = |element: u32| -> Vec<u32> {
            std::iter::successors(Some(element), |rest| Some(rest / prime))
                .take(degree as usize)
                .map(|rest| rest % prime)
                .collect()
        };
        let number = |digits: &[u32]| digits.iter().rev().fold(0, |number, digit| number * prime + digit) as u16;
        let elements: Vec<Vec<u32>> = (0..order).map(digits).collect();
        let pairs = || elements.iter().flat_map(|a| elements.iter().map(move |b| (a, b)));
        let sum = |(a, b): (&Vec<u32>, &Vec<u32>)| {
            let sum: Vec<u32> = a.iter().zip(b).map(|(a, b)| (a + b) % prime).collect();
            number(&sum)
        };
        // x^degree equals minus the lower part of the reducing polynomial.
        let product = |a: &[u32], b: &[u32], lower: &[u32]| {
            let n = degree as usize;
            let mut terms = vec![0; 2 * n - 1];
            for (i, a) in a.iter().enumerate() {
                for (j, b) in b.iter().enumerate() {
                    terms[i + j] = (terms[i + j] + a * b) % prime;
                }
            }
            for high in (n..2 * n - 1).rev() {
                let factor = std::mem::take(&mut terms[high]);
                for (i, coefficient) in lower.iter().enumerate() {
                    let term = &mut terms[high - n + i];
                    *term = (*term + factor * (prime - coefficient)) % prime;
                }
            }
            number(&terms[..n])
        };
        let products = elements.iter().find_map(|lower| {
            let products: Vec<u16> = pairs().map(|(a, b)| product(a, b, lower)).collect();
            let zeros = products.iter().filter(|product| **product == 0).count();
            (zeros == 2 * order as usize - 1).then_some(products)
        });
        Some(Field { order, sums: pairs().map(sum).collect(), products: products? })
    }

    pub(crate) fn add(&self, a: u32, b: u32) -> u32 {
        u32::from(self.sums[(a * self.order + b) as usize])
    }

    pub(crate) fn multiply(&self, a: u32, b: u32) -> u32 {
        u32::from(self.products[(a * self.order + b) as usize])
    }

    /// Returns the powers 0 to q - 2 of the first primitive element: every element but 0, once.
    pub(crate) fn powers(&self) -> Vec<u32> {
        let all = (1..self.order).map(|element| {
            let mut powers = vec![1];
            let mut power = element;
            while power != 1 {
                powers.push(power);
                power = self.multiply(power, element);
            }
            powers
        });
        all.into_iter().find(|powers| powers.len() as u32 == self.order - 1).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ORDERS: [u32; 27] =
        [2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32, 37, 41, 43, 47, 49, 53, 59, 61, 64];

    #[test]
    fn prime_powers_are_known() {
        assert_eq!((2..=64).filter(|q| prime_power(*q).is_some()).collect::<Vec<_>>(), ORDERS);
        assert_eq!((prime_power(81), prime_power(6), prime_power(1), prime_power(0)), (Some((3, 4)), None, None, None));
        assert!(Field::new(12).is_none());
    }

    /// Fermat: a^q = a; and the powers of a primitive element are all elements but 0.
    #[test]
    fn powers_of_every_field_to_64() {
        for q in ORDERS {
            let field = Field::new(q).unwrap();
            for a in 0..q {
                assert_eq!((0..q).fold(1, |power, _| field.multiply(power, a)), a, "{a}^{q}");
            }
            let mut powers = field.powers();
            powers.sort_unstable();
            assert_eq!(powers, (1..q).collect::<Vec<_>>(), "q = {q}");
        }
    }

    /// Specification 10.2: GF(9) = GF(3)[x]/(x^2+1), where 3 is x; x + 1 (4) is primitive and x is not.
    #[test]
    fn nine_elements_by_hand() {
        let field = Field::new(9).unwrap();
        assert_eq!(field.multiply(3, 3), 2, "x * x = -1");
        assert_eq!(field.multiply(4, 4), 6, "(x + 1)^2 = x^2 + 2x + 1 = 2x");
        assert_eq!(field.add(5, 8), 1, "(x + 2) + (2x + 2) = 3x + 4 = 1");
        assert_eq!(field.powers(), [1, 4, 6, 7, 2, 8, 3, 5]);
    }

    fn three() -> impl Strategy<Value = (u32, u32, u32, u32)> {
        prop::sample::select(ORDERS.to_vec()).prop_flat_map(|q| (Just(q), 0..q, 0..q, 0..q))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..Default::default() })]
        #[test]
        fn axioms((q, a, b, c) in three()) {
            let f = Field::new(q).unwrap();
            prop_assert_eq!(f.add(a, b), f.add(b, a));
            prop_assert_eq!(f.multiply(a, b), f.multiply(b, a));
            prop_assert_eq!(f.add(f.add(a, b), c), f.add(a, f.add(b, c)));
            prop_assert_eq!(f.multiply(f.multiply(a, b), c), f.multiply(a, f.multiply(b, c)));
            prop_assert_eq!(f.multiply(a, f.add(b, c)), f.add(f.multiply(a, b), f.multiply(a, c)));
            prop_assert_eq!((f.add(a, 0), f.multiply(a, 1), f.multiply(a, 0)), (a, a, 0));
            prop_assert_eq!((0..q).filter(|x| f.add(a, *x) == 0).count(), 1);
            prop_assert_eq!((0..q).filter(|x| f.multiply(a, *x) == 1).count(), usize::from(a != 0));
        }
    }
}
