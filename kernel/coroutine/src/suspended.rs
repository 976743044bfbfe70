//! Suspended bodies by their activations, for both engines.
//!
//! Most bodies are resumed right after they were suspended: their host call is answered at once. The
//! one that was suspended last is kept apart, so that it costs no node of a map.
//! Invariant: a body is in one place.

use std::collections::BTreeMap;

use gesmas_machine::ActivationId;

/// See the file's head.
pub(crate) struct Suspended<B> {
    last: Option<(ActivationId, B)>,
    others: BTreeMap<ActivationId, B>,
}

impl<B> Default for Suspended<B> {
    fn default() -> Self {
        Self { last: None, others: BTreeMap::new() }
    }
}

impl<B> Suspended<B> {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.others.len() + usize::from(self.last.is_some())
    }

    /// Whether this one is here.
    pub(crate) fn contains(&self, id: ActivationId) -> bool {
        self.last.as_ref().is_some_and(|(last, _)| *last == id) || self.others.contains_key(&id)
    }

    /// Adds a body that is not here.
    pub(crate) fn add(&mut self, id: ActivationId, body: B) {
        if let Some((before, body)) = self.last.replace((id, body)) {
            self.others.insert(before, body);
        }
    }

    /// Takes a body out.
    pub(crate) fn take(&mut self, id: ActivationId) -> Option<B> {
        match self.last.take_if(|(last, _)| *last == id) {
            Some((_, body)) => Some(body),
            None => self.others.remove(&id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_found_wherever_they_are_kept() {
        let mut suspended = Suspended::default();
        for id in 1..=3 {
            suspended.add(ActivationId(id), id);
        }
        assert!(suspended.contains(ActivationId(1)) && suspended.contains(ActivationId(3)));
        assert_eq!(suspended.len(), 3);
        assert_eq!(suspended.take(ActivationId(3)), Some(3));
        assert_eq!(suspended.take(ActivationId(3)), None);
        assert_eq!(suspended.take(ActivationId(1)), Some(1));
        suspended.add(ActivationId(1), 4);
        assert_eq!((suspended.take(ActivationId(2)), suspended.len()), (Some(2), 1));
        assert_eq!(suspended.take(ActivationId(1)), Some(4));
        assert!(!suspended.contains(ActivationId(1)) && suspended.len() == 0);
    }
}
