//! The functions of the documents component, judged by programs of other people.

mod corpus;
mod custody;
mod fill;
mod hostile;
mod marks;
mod merging;
mod pages;
mod pictures;
mod support;
