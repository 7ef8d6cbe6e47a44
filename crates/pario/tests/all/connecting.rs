//! URLs, what becomes of wrong ones, and the environment.
//!
//! The servers of a job take the program `pario`, which the system tests have.

use pario::Status;

use crate::service::Service;
use testkit::TempDir;

#[test]
fn every_kind_of_url_connects() {
    let dir = TempDir::new();
    let url = format!("dir:{}", dir.path().display());
    assert!(!pario::connect(&url).unwrap().exists("/x").unwrap());
    let service = Service::start(1);
    assert!(service.url().starts_with("unix:"));
    let pario = pario::connect(service.url()).unwrap();
    assert_eq!(pario.client().members().unwrap().len(), 1);
}

#[test]
fn a_wrong_url_is_named() {
    for url in ["", "matrix", "dir:", "http://x", "tcp:host"] {
        let error = pario::connect(url).unwrap_err();
        assert_eq!(error.status(), Status::InvalidArgument, "{url}");
        let text = error.to_string();
        assert!(
            text.starts_with("url: ") && text.contains("dir:PATH"),
            "{text}"
        );
    }
}

#[test]
fn what_is_not_there_is_refused_in_the_one_error_type() {
    let dir = TempDir::new();
    std::fs::write(dir.path().join("file"), "").unwrap();
    let url = format!("dir:{}/file", dir.path().display());
    let error = pario::connect(&url).unwrap_err();
    assert!(error.to_string().contains("file"), "{error}");
    let options = pario::ConnectOptions::default().with_timeout(std::time::Duration::ZERO);
    let url = format!("unix:{}/nobody", dir.path().display());
    let error = pario::connect_with(&url, options, &Default::default()).unwrap_err();
    assert_eq!(error.status(), Status::Unreachable, "{error}");
}
