//! Directories that are removed with all that is in them: names at once, the rest some at a time.
//!
//! Deaths of the manager in the middle are in the tests of the whole service.

use crate::fixture::{ALICE, BOB, Fixture, refused, who};
use meta::catalogue::{Credentials, TreeSurvey};
use meta::{FileId, MetaError, Rights, Time};
use wire::Status;

impl Fixture {
    fn mkdir(&mut self, user: u32, path: &str, mode: u32) -> FileId {
        self.by(user, |b, c| b.mkdir(c, path, mode)).unwrap()
    }

    fn survey(&self, user: u32, path: &str) -> Result<TreeSurvey, MetaError> {
        let snapshot = self.catalogue.snapshot().unwrap();
        snapshot.survey_tree(&who(user), path)
    }

    fn remove_tree(&mut self, user: u32, path: &str) -> Result<(), MetaError> {
        let survey = self.survey(user, path)?;
        self.by(user, |b, c| b.remove_tree(c, path, &survey))
    }

    /// One step; whether there is more.
    fn clear(&mut self) -> bool {
        let step = self.catalogue.transact(|b| b.clear_trees(Time(2_000)));
        step.unwrap().unwrap()
    }

    fn counts(&self) -> meta::catalogue::Counts {
        self.catalogue.snapshot().unwrap().counts().unwrap()
    }
}

/// A directory of Alice's with so many files in each of its directories.
fn with_tree(files: usize) -> Fixture {
    let mut f = Fixture::new(1);
    f.by(0, |b, c| b.chmod(c, "/", 0o777)).unwrap();
    for path in ["/t", "/t/a", "/t/a/deep", "/t/b", "/t/empty"] {
        f.mkdir(ALICE, path, 0o755);
    }
    for path in ["/t", "/t/a", "/t/a/deep", "/t/b"] {
        for k in 0..files {
            f.create(ALICE, &format!("{path}/{k}")).unwrap();
        }
    }
    f
}

#[test]
fn names_of_a_tree_go_at_once_and_the_rest_step_by_step() {
    let mut f = with_tree(300);
    f.create(ALICE, "/stays").unwrap();
    assert_eq!((f.counts().files, f.counts().directories), (1201, 6));
    f.remove_tree(ALICE, "/t").unwrap();
    assert_eq!(f.names("/"), ["stays"]);
    for path in ["/t", "/t/a", "/t/a/deep/7"] {
        assert_eq!(f.status(ALICE, path), Status::NotFound, "{path}");
    }
    f.clean();
    // The name is free at once.
    f.mkdir(BOB, "/t", 0o755);
    f.create(BOB, "/t/mine").unwrap();
    let (mut steps, mut names) = (0, 0);
    while f.clear() {
        steps += 1;
        // Whatever kills the manager now, the next start goes on.
        if steps % 3 == 0 {
            f = f.restart();
        }
        f.clean();
        let now = f.counts();
        assert_eq!(now.trees, 1);
        assert!(
            now.tree_names >= names && now.tree_directories <= 5,
            "{now:?}"
        );
        names = now.tree_names;
    }
    assert!(steps >= 5, "{steps} steps for 1204 names");
    assert!(names >= 900, "{names}");
    // After a restart a file may be open until its clients had time to say so.
    f.catalogue.transact(|b| b.end_recovery()).unwrap().unwrap();
    let now = f.counts();
    assert_eq!((now.trees, now.tree_names, now.tree_directories), (0, 0, 0));
    assert_eq!((now.files, now.directories), (2, 2));
    assert_eq!(f.names("/t"), ["mine"]);
    // Bytes wait for their server, as those of any file that was removed.
    assert_eq!(now.removals, 1200);
    assert!(!f.clear());
    f.clean();
}

#[test]
fn trees_are_cleared_one_after_the_other() {
    let mut f = with_tree(3);
    f.by(ALICE, |b, c| b.rename(c, "/t/a", "/other")).unwrap();
    f.remove_tree(ALICE, "/t").unwrap();
    f.remove_tree(ALICE, "/other").unwrap();
    assert_eq!(f.counts().trees, 2);
    f.clean();
    while f.clear() {}
    assert_eq!((f.counts().files, f.counts().directories), (0, 1));
    f.clean();
}

#[test]
fn open_file_of_a_tree_goes_with_its_last_handle() {
    let mut f = with_tree(2);
    let opened = f.open(ALICE, "/t/a/deep/1", Rights::READ).unwrap();
    f.remove_tree(ALICE, "/t").unwrap();
    while f.clear() {
        f.clean();
    }
    assert_eq!((f.counts().files, f.counts().trees), (1, 0));
    f.clean();
    // Its directory is gone, which keeps no client from coming back to it.
    let mut f = f.restart();
    let file = opened.attributes.file;
    let again = f.by(ALICE, |b, c| b.reopen(c, file, Rights::READ, None));
    let opened = again.unwrap();
    f.catalogue.transact(|b| b.end_recovery()).unwrap().unwrap();
    f.by(ALICE, |b, c| b.close(c, opened.handle)).unwrap();
    assert_eq!(f.counts().files, 0);
    f.clean();
}

#[test]
fn who_may_not_remove_every_name_removes_none() {
    let mut f = with_tree(1);
    // It is not his, and in a directory of hers.
    refused(f.survey(BOB, "/t"), Status::PermissionDenied);
    f.by(ALICE, |b, c| b.chmod(c, "/t", 0o777)).unwrap();
    refused(f.remove_tree(BOB, "/t"), Status::PermissionDenied);
    // One directory of his deep in hers: she may not, he may not, root may.
    f.by(ALICE, |b, c| b.chmod(c, "/t/a/deep", 0o777)).unwrap();
    f.mkdir(BOB, "/t/a/deep/his", 0o700);
    f.create(BOB, "/t/a/deep/his/file").unwrap();
    refused(f.remove_tree(ALICE, "/t"), Status::PermissionDenied);
    refused(f.remove_tree(BOB, "/t/a/deep"), Status::PermissionDenied);
    // An empty one can be removed by who may change the one that it is in.
    f.by(BOB, |b, c| {
        b.unlink(
            c,
            "/t/a/deep/his/file",
            meta::catalogue::UnlinkHow::EvenIfOpen,
        )
    })
    .unwrap();
    f.survey(ALICE, "/t").unwrap();
    // In a sticky one only the owner removes.
    f.by(ALICE, |b, c| b.chmod(c, "/t/a/deep", 0o1777)).unwrap();
    refused(f.remove_tree(BOB, "/t/a/deep"), Status::PermissionDenied);
    assert_eq!(f.counts().trees, 0);
    assert_eq!(f.names("/t"), ["0", "a", "b", "empty"]);
    f.by(0, |b, c| b.remove_tree(c, "/t", &TreeSurvey::default()))
        .unwrap();
    assert_eq!(f.counts().trees, 1);
}

#[test]
fn tree_that_has_changed_since_it_was_looked_at_is_looked_at_again() {
    let mut f = with_tree(1);
    f.by(ALICE, |b, c| b.chmod(c, "/t/a/deep", 0o777)).unwrap();
    let survey = f.survey(ALICE, "/t").unwrap();
    // A user who is faster: his directory must not go with hers.
    let later = who(BOB);
    let caller = meta::catalogue::Caller {
        client: meta::ClientId(7),
        credentials: &later,
        now: Time(1_500),
    };
    let made = f
        .catalogue
        .transact(|b| b.mkdir(&caller, "/t/a/deep/his", 0o700));
    made.unwrap().unwrap();
    let removed = f.by(ALICE, |b, c| b.remove_tree(c, "/t", &survey));
    refused(removed, Status::Busy);
    // The survey of another tree is none.
    let other = f.survey(ALICE, "/t/b").unwrap();
    refused(
        f.by(ALICE, |b, c| b.remove_tree(c, "/t", &other)),
        Status::Busy,
    );
    refused(
        f.by(ALICE, |b, c| b.remove_tree(c, "/t", &TreeSurvey::default())),
        Status::Busy,
    );
    assert_eq!(f.names("/t"), ["0", "a", "b", "empty"]);
    f.remove_tree(ALICE, "/t").unwrap();
    f.clean();
}

#[test]
fn what_is_no_tree_is_refused() {
    let mut f = with_tree(1);
    refused(f.remove_tree(ALICE, "/nothing"), Status::NotFound);
    refused(f.remove_tree(ALICE, "/t/0"), Status::NotDirectory);
    for path in ["/", "/..", "/t/.."] {
        let removed = f.by(0, |b, c| b.remove_tree(c, path, &TreeSurvey::default()));
        assert!(removed.is_err(), "{path}");
    }
    let root = f.catalogue.snapshot().unwrap();
    assert!(root.survey_tree(&Credentials::ROOT, "/").is_err());
    assert_eq!(f.names("/"), ["t"]);
}
