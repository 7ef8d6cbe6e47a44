//! The macros behind the message definitions: structs, choices, and the table of kinds.
//!
//! They only save writing: what they expand to is a plain struct or enum with a [`Field`]
//! implementation that goes through the fields in order.
//!
//! [`Field`]: super::Field

/// A struct whose fields travel in order; or, with `for`, the same for a struct that exists.
macro_rules! record {
    ($($(#[$doc:meta])* pub struct $name:ident { $($(#[$fdoc:meta])* pub $field:ident : $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name { $($(#[$fdoc])* pub $field: $type,)* }
        record! { for $name { $($field: $type),* } }
    )*};
    (for $name:ident { $($field:ident : $type:ty),* }) => {
        impl $crate::message::Field for $name {
            const LEAST: usize = 0 $(+ <$type as $crate::message::Field>::LEAST)*;

            fn put(&self, out: &mut Vec<u8>) {
                let _ = &out;
                $($crate::message::Field::put(&self.$field, out);)*
            }

            fn read(r: &mut $crate::Reader<'_>) -> Result<Self, $crate::DecodeError> {
                let _ = &r;
                Ok($name { $($field: $crate::message::Field::read(r)?,)* })
            }
        }
    };
}

/// An enum without fields whose variants travel as their numbers.
macro_rules! choice {
    ($($(#[$doc:meta])* pub enum $name:ident { $($(#[$vdoc:meta])* $variant:ident = $n:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant = $n,)* }

        impl $crate::message::Field for $name {
            fn put(&self, out: &mut Vec<u8>) {
                $crate::put_number(out, *self as u64);
            }

            fn read(r: &mut $crate::Reader<'_>) -> Result<Self, $crate::DecodeError> {
                match r.number()? {
                    $($n => Ok($name::$variant),)*
                    other => Err($crate::DecodeError::BadTag(other)),
                }
            }
        }
    )*};
}

/// The table of kinds: number, sender, receiver, request, answer.
macro_rules! kinds {
    ($($n:literal $from:ident to $to:ident: $request:ty => $answer:ty;)*) => {
        $(impl $crate::message::Request for $request {
            const KIND: u16 = $n;
            const NAME: &'static str = stringify!($request);
            type Answer = $answer;
        })*

        /// All kinds that are plain requests with plain answers, ascending: number, name, sender, receiver, and a
        /// decoder of the request and one of the answer that only say whether the bytes are one.
        pub const KINDS: &[$crate::message::Kind] = &[$($crate::message::Kind {
            number: $n,
            name: stringify!($request),
            from: $crate::message::Sender::$from,
            to: $crate::message::Receiver::$to,
            check_request: |bytes| $crate::message::decode::<$request>(bytes).map(drop),
            check_answer: |bytes| $crate::message::decode::<$answer>(bytes).map(drop),
            recode_request: $crate::message::recode::<$request>,
            recode_answer: $crate::message::recode::<$answer>,
        },)*];
    };
}
