//! The library as its users meet it, each test against a directory without a service and against a service of real servers in
//! threads of the test.

mod arrays;
mod connecting;
mod examples;
mod files;
mod service;
mod teams;
mod with_ndarray;
