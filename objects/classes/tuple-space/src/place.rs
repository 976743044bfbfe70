//! Tuples and templates, and where tuples lie: in the order of their values.
//!
//! Invariant: the encoding of a field says where it ends, so that a tuple begins with the values of a
//! template exactly when its bytes begin with those of the values.

use gesmas_sdk::{
    abi::{
        Reader,
        value::{Value as _, from_bytes},
    },
    prelude::*,
};

use crate::TupleSpaceError;

/// A value of a tuple.
// It keeps one more than a tuple may have: half a million flags would not fit into memory, and the call would
// end in a trap instead of `TooLong`.
#[derive(Clone, Debug, PartialEq, Eq, Value)]
#[value(keep = 256)]
pub enum Field {
    /// A number.
    Number(i64),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Bytes),
    /// Yes or no.
    Flag(bool),
}

impl Field {
    /// A text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }
}

/// A place of a template.
#[derive(Clone, Debug, PartialEq, Eq, Value)]
#[value(keep = 256)]
pub enum Place {
    /// Matches anything.
    Any,
    /// Matches this value.
    Exactly(Field),
}

/// A row of values.
pub type Tuple = Vec<Field>;
/// What a tuple is to look like.
pub type Template = Vec<Place>;

/// Whether a tuple is as a template says.
pub(crate) fn matches(template: &Template, tuple: &Tuple) -> bool {
    let fits = |(place, field): (&Place, &Field)| match place {
        Place::Any => true,
        Place::Exactly(exactly) => exactly == field,
    };
    template.len() == tuple.len() && template.iter().zip(tuple).all(fits)
}

/// Whether a tuple may be as a template says whose values begin so; what is cut off is not known.
pub(crate) fn may_match(template: &Template, values: &Bytes) -> bool {
    let mut reader = Reader::new(values);
    let fields = template.iter().map_while(|place| Some((place, Field::decode(&mut reader).ok()?)));
    let fits = |(place, field): (&Place, Field)| match place {
        Place::Any => true,
        Place::Exactly(exactly) => *exactly == field,
    };
    fields.into_iter().all(fits)
}

/// Bytes of values at most by which tuples lie in order. Twice as many, and a name and a number, fit into
/// a key.
pub(crate) const SHELF_MAX: usize = 1_000;

/// The part of a place in the space that comes from values: their number, and some of them from the first
/// on, encoded.
#[derive(Clone, Debug, PartialEq, Eq, Value)]
pub(crate) struct Shelf {
    places: u8,
    values: Bytes,
}

impl Shelf {
    /// The shelf, and whether values were cut off.
    fn new<'a>(
        places: usize,
        fields: impl IntoIterator<Item = &'a Field>,
    ) -> Result<(Self, bool), TupleSpaceError> {
        let places = u8::try_from(places).map_err(|_| TupleSpaceError::TooLong)?;
        let (mut values, mut long) = (Vec::new(), false);
        for field in fields {
            long = values.len() + field.encoded_len() > SHELF_MAX;
            field.encode(&mut values);
            if long {
                values.truncate(SHELF_MAX);
                break;
            }
        }
        values.shrink_to_fit();
        Ok((Self { places, values: Bytes(values) }, long))
    }

    /// Where a tuple lies, and whether it is longer than what lies there.
    pub(crate) fn of_tuple(tuple: &Tuple) -> Result<(Self, bool), TupleSpaceError> {
        Self::new(tuple.len(), tuple)
    }

    /// What the places of all tuples begin with that match.
    pub(crate) fn of_template_prefix(template: &Template) -> Result<Self, TupleSpaceError> {
        Ok(Self::new(template.len(), template.iter().map_while(exactly))?.0)
    }

    /// Where a call waits for tuples that match.
    pub(crate) fn of_template(template: &Template) -> Result<Self, TupleSpaceError> {
        Ok(Self::new(template.len(), template.first().and_then(exactly))?.0)
    }

    /// Where calls wait that this tuple may match: those that want its first value, and those that take
    /// anything there. A tuple without places has one such place; nobody waits at the other.
    pub(crate) fn of_waiting_for(tuple: &Tuple) -> Result<[Self; 2], TupleSpaceError> {
        let (anything, _) = Self::new(tuple.len(), [])?;
        let exactly = match tuple.first() {
            Some(first) => Self::new(tuple.len(), [first])?.0,
            None => Self { places: 0, values: Bytes(vec![0]) },
        };
        Ok([exactly, anything])
    }

    /// The place on the shelf with this number.
    pub(crate) fn with(self, number: u64) -> (u8, Bytes, u64) {
        (self.places, self.values, number)
    }

    /// Whether it is this one.
    pub(crate) fn is(&self, places: u8, values: &Bytes) -> bool {
        self.places == places && self.values == *values
    }

    /// Whether it is this one, or its values begin with those of this one.
    pub(crate) fn begins(&self, places: u8, values: &Bytes) -> bool {
        self.places == places && values.starts_with(&self.values)
    }

    /// The tuple that lies there.
    pub(crate) fn tuple(places: u8, values: &Bytes) -> Tuple {
        let count = u32::from(places).to_le_bytes();
        let encoded = [&count, values.as_ref()].concat();
        from_bytes(&encoded).expect("a tuple lies where its values say")
    }
}

fn exactly(place: &Place) -> Option<&Field> {
    match place {
        Place::Any => None,
        Place::Exactly(field) => Some(field),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_matches_by_its_values_and_its_length() {
        let tuple = vec![Field::text("resize"), Field::Number(640)];
        let exactly = |field: &Field| Place::Exactly(field.clone());
        assert!(matches(&vec![Place::Any, Place::Any], &tuple));
        assert!(matches(&vec![exactly(&tuple[0]), exactly(&tuple[1])], &tuple));
        assert!(!matches(&vec![Place::Any], &tuple));
        assert!(!matches(&vec![Place::Any; 3], &tuple));
        assert!(!matches(&vec![Place::Any, Place::Exactly(Field::text("640"))], &tuple));
        assert!(matches(&vec![], &vec![]));
    }

    #[test]
    fn a_tuple_is_read_from_where_it_lies() {
        let fields = [
            Field::Number(-1),
            Field::text("a\0b"),
            Field::Bytes(Bytes(vec![0, 255])),
            Field::Flag(true),
        ];
        for length in 0..=fields.len() {
            let tuple = fields[..length].to_vec();
            let (shelf, long) = Shelf::of_tuple(&tuple).expect("it is short");
            assert_eq!((Shelf::tuple(shelf.places, &shelf.values), long), (tuple, false));
        }
        assert_eq!(Shelf::of_tuple(&vec![Field::Flag(true); 256]), Err(TupleSpaceError::TooLong));
    }

    #[test]
    fn values_that_begin_alike_are_told_apart() {
        let tuple = vec![Field::text("ab"), Field::Flag(true)];
        let (shelf, _) = Shelf::of_tuple(&tuple).expect("it is short");
        for (first, begins) in [("ab", true), ("a", false), ("abc", false), ("", false)] {
            let template = vec![Place::Exactly(Field::text(first)), Place::Any];
            let prefix = Shelf::of_template_prefix(&template).expect("it is short");
            assert_eq!(prefix.begins(shelf.places, &shelf.values), begins, "{first:?}");
        }
    }
    /// Whether a shelf cuts off does not change what is found there.
    #[test]
    fn long_values_are_cut_alike() {
        for length in [SHELF_MAX - 6, SHELF_MAX - 5, SHELF_MAX - 4, SHELF_MAX, 3 * SHELF_MAX] {
            let (text, end) = ("x".repeat(length), Field::Flag(true));
            let tuple = vec![Field::text(text.clone()), end.clone()];
            let (shelf, long) = Shelf::of_tuple(&tuple).expect("it has two places");
            assert_eq!(long, tuple.encoded_len() - 4 > SHELF_MAX, "{length}");
            assert!(shelf.values.len() <= SHELF_MAX);
            let exactly = |text: String| vec![Place::Exactly(Field::Text(text)), Place::Any];
            let longer = exactly(text.clone() + "y");
            for (template, begins) in
                [(exactly(text.clone()), true), (exactly(text[1..].into()), false)]
            {
                let prefix = Shelf::of_template_prefix(&template).expect("it has two places");
                assert_eq!(prefix.begins(shelf.places, &shelf.values), begins, "{length}");
                let may = may_match(&template, &shelf.values);
                assert!(if begins { may } else { !may || length + 5 > SHELF_MAX }, "{length}");
            }
            assert!(!matches(&longer, &tuple));
            let [nearer, _] = Shelf::of_waiting_for(&tuple).expect("it has two places");
            let waits = Shelf::of_template(&exactly(text)).expect("it has two places");
            assert_eq!(nearer, waits, "{length}");
        }
        let tuple = vec![Field::Flag(true), Field::text("x".repeat(SHELF_MAX))];
        let (shelf, _) = Shelf::of_tuple(&tuple).expect("it has two places");
        for flag in [true, false] {
            let template = vec![Place::Exactly(Field::Flag(flag)), Place::Any];
            assert_eq!(may_match(&template, &shelf.values), flag);
        }
    }
}
