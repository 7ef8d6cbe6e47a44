//! Hints: what a program gives in an info object, and what it is told is in force.
