//! Single statements: what they become, what is refused and where, and what stays as it is.
//! Nothing is compiled here.

use hpf::{Arrays, Form, Hints, Options, translate};

/// A program around statements, with a distributed array.
fn around(statements: &str) -> String {
    format!(
        "program p\nreal :: a(8), x\nreal, allocatable :: c(:)\n!hpf$ distribute (block) onto q(2) :: a, c\n{statements}\nend program\n"
    )
}

/// What is written for statements, without hints.
fn becomes(statements: &str) -> String {
    let options = Options {
        hints: Hints::Omitted,
        ..Options::default()
    };
    let text = around(statements);
    let done = translate(&text, &options).unwrap_or_else(|e| panic!("{e}"));
    let head = "program p\n  use pario_hpf\nreal :: a(8), x\nreal, allocatable :: c(:)\n!hpf$ distribute (block) onto q(2) :: a, c\n";
    let rest = done
        .text
        .strip_prefix(head)
        .unwrap_or_else(|| panic!("{}", done.text));
    rest.strip_suffix("\nend program\n").unwrap().to_owned()
}

/// Line, character and text of a refusal; lines count from the first statement.
fn refused(statements: &str) -> (usize, usize, String) {
    let error = translate(&around(statements), &Options::default()).expect_err(statements);
    (
        error.line() - 4,
        error.character(),
        error.message().to_owned(),
    )
}

const A: &str = "a, shape(a), 'A', 'distribute (block) onto q(2) :: a, c', pario_hpf_global";

/// Without the breaks of long lines.
fn joined(text: &str) -> String {
    let mut all = text.replace(" &\n", "\u{1}");
    while let Some(at) = all.find('\u{1}') {
        let end = all[at + 1..]
            .find(|c| c != ' ')
            .map_or(all.len(), |n| at + 1 + n);
        all.replace_range(at..end, if all[..at].ends_with('(') { "" } else { " " });
    }
    all.replace("' // '", "")
}

#[test]
fn statements_become_calls() {
    let write = format!("call pario_hpf_write(10, {A})");
    assert_eq!(joined(&becomes("write (10) a")), write);
    assert_eq!(
        joined(&becomes("write (unit=10) a ! all of it")),
        format!("{write} ! all of it")
    );
    assert_eq!(
        joined(&becomes("x = 1; write (10) a; x = 2")),
        format!("x = 1; {write}; x = 2")
    );
    assert_eq!(
        joined(&becomes("if (x > 1) write (10) a")),
        format!("if(x>1) {write}")
    );
    assert_eq!(joined(&becomes("30 write (10) a")), format!("30 {write}"));
    let lines = joined(&becomes("  read (10, iostat=i, end=5) x, a\n5 continue"));
    let read = format!(
        "  call pario_hpf_read_same(10, x, iostat=i)\n  if (i == 0) call pario_hpf_read(10, {A}, iostat=i)\n  if (is_iostat_end(i)) goto 5\n5 continue"
    );
    assert_eq!(lines, read);
    let both = joined(&becomes(
        "if (x > 1) read (10, err=7) a\n7 rewind 10\nclose (10, status='delete')\nflush (10)",
    ));
    assert!(
        both.starts_with("if(x>1) then\ncall pario_hpf_read(10"),
        "{both}"
    );
    assert!(both.contains("\nif (pario_hpf_status > 0) goto 7\nif (is_iostat_end(pario_hpf_status)) error stop 'end of file'\nend if\n7 call pario_hpf_rewind(10)\ncall pario_hpf_close(10, status='delete')\ncall pario_hpf_flush(10)"), "{both}");
    let open = joined(&becomes(
        "open (10, file=name//'.dat', &\n  form='unformatted', & ! as it is\n  iostat=i)\nwrite (10) a\ninquire (10, opened=l)\ninquire (file=name//'.dat', exist=l)",
    ));
    assert!(
        open.starts_with(
            "call pario_hpf_open(unit=10, file=name//'.dat', form='unformatted', iostat=i)\n"
        ),
        "{open}"
    );
    assert!(open.ends_with("call pario_hpf_inquire(unit=10, opened=l)\ncall pario_hpf_inquire(file=name//'.dat', exist=l)"), "{open}");
}

#[test]
fn hints_of_the_compiler_are_written() {
    let text = around(
        "open (10, file='f', form='unformatted')\nwrite (10) a\nif (x > 1) then\n  x = 2\n  read (10) a\nend if",
    );
    let done = translate(&text, &Options::default()).unwrap();
    let text = joined(&done.text);
    assert!(
        text.contains(&format!("call pario_hpf_expect({A})\ncall pario_hpf_open(")),
        "{text}"
    );
    assert!(text.contains("hints='access_style=sequential')"), "{text}");
    assert!(
        text.contains(&format!(
            "then\n  call pario_hpf_will_read(10, {A})\n  x = 2\n"
        )),
        "{text}"
    );
    // What has no shape yet is not told of.
    let text = around("open (10, file='f', form='unformatted')\nwrite (10) c");
    assert!(
        !translate(&text, &Options::default())
            .unwrap()
            .text
            .contains("expect")
    );
}

#[test]
fn what_is_not_offered_is_refused_at_its_character() {
    for (statements, line, character, part) in [
        ("write (10, *) a", 1, 15, "formatted"),
        ("x = 1\n  read *, x, a", 2, 14, "formatted"),
        ("write (12, '(f5.1)') a(3)", 1, 22, "formatted"),
        ("open (6, file='f')\nwrite (6, *) a", 2, 14, "formatted"),
        ("write (10) a\nwrite (10, '(f5.1)') x", 2, 12, "formatted"),
        (
            "open (10, form='formatted')\nwrite (10) a",
            1,
            11,
            "formatted",
        ),
        (
            "write (10) x, a%y",
            1,
            15,
            "an expression of the distributed array a",
        ),
        ("write (10) a+1", 1, 12, "an expression of"),
        ("write (10) x, 2*(a)+1", 1, 15, "an expression of"),
        ("write (10) (1+a(2))", 1, 12, "an expression of"),
        ("write (10) a\nbackspace 10", 2, 1, "BACKSPACE"),
        ("write (10) a\nwait (10)", 2, 1, "WAIT"),
        ("read (10)\nwrite (10) a", 1, 1, "skips a record"),
        (
            "write (10) a, (c(i), c(i+1), i=1,3)",
            1,
            15,
            "several items",
        ),
        ("write (10) (c(2*i), i=1,3)", 1, 12, "order of memory"),
        ("write (10) a, (i, i=1,3)", 1, 15, "does not run through"),
        (
            "open (10, form='unformatted', convert='swap')\nwrite (10) a",
            1,
            31,
            "CONVERT=",
        ),
        ("write (10, advance='no') a", 1, 12, "ADVANCE="),
        (
            "!hpf$ distribute b(blok)\nwrite (10) a",
            1,
            20,
            "BLOK is no distribution",
        ),
        (
            "!hpf$ align b(i) with &\n!hpf$   t(-i)",
            2,
            11,
            "steps of -1",
        ),
        (
            "integer :: d(9)\n!hpf$ distribute d(block(2)) onto q(2)",
            2,
            20,
            "holds 4 of 9",
        ),
    ] {
        let (found_line, found_character, message) = refused(statements);
        assert_eq!(
            (found_line, found_character),
            (line, character),
            "{statements}: {message}"
        );
        assert!(message.contains(part), "{statements}: {message}");
    }
    let local = Options {
        arrays: Arrays::Local,
        ..Options::default()
    };
    let error = translate(&around("write (10) a"), &local).unwrap_err();
    assert!(
        error
            .message()
            .contains("the shape of all of a is not known"),
        "{error}"
    );
    let part = translate(&around("write (10) a(1:4)"), &local).unwrap_err();
    assert!(
        part.message().contains("declarations are of local parts"),
        "{part}"
    );
    assert_eq!(error.to_string().lines().count(), 3);
}

#[test]
fn parts_of_arrays_are_aligned_with_the_whole() {
    let of = |part: &str, alignment: &str| {
        format!(
            "{part}, shape({part}), 'A$PART', 'distribute (block) onto q(2) :: a, c;dimension a(' // pario_hpf_bounds(lbound(a), ubound(a)) // ');align a$part(:) with a({alignment})', pario_hpf_global"
        )
    };
    for (item, part, alignment) in [
        ("a(1:4)", "a(1:4)", "1:4"),
        ("a(::2)", "a(::2)", "::2"),
        ("a(3)", "a(3:3)", "3:3"),
        ("a(n+1:)", "a(n+1:)", "' // pario_hpf_text(n+1) // ':"),
        (
            "(a(i), i=1,n,2)",
            "a(1:n:2)",
            "1:' // pario_hpf_text(n) // ':2",
        ),
    ] {
        let text = joined(&becomes(&format!("read (10) {item}")));
        let call = format!("call pario_hpf_read(10, {})", of(part, alignment));
        assert_eq!(text, call, "{item}");
    }
    // All of an array by another name; loops through an array that all processes have alike; values of functions.
    let whole = joined(&becomes("write (10) a(:)"));
    assert_eq!(whole, format!("call pario_hpf_write(10, {A})"));
    let same = joined(&becomes(
        "write (10) a, (x(i), i=1,3), (1.0,2.0), maxval(a)",
    ));
    assert!(
        same.ends_with("\ncall pario_hpf_write_same(10, x(1:3))\ncall pario_hpf_write_same(10, (1.0,2.0))\ncall pario_hpf_write_same(10, maxval(a))"),
        "{same}"
    );
    let at = joined(&becomes(
        "write (10, rec=n) x, a\nread (10, pos=5) x\nendfile 10",
    ));
    assert!(
        at.starts_with("call pario_hpf_write_same(10, x, rec=n)\ncall pario_hpf_write(10, a"),
        "{at}"
    );
    assert!(
        at.ends_with("\ncall pario_hpf_read_same(10, x, pos=5)\ncall pario_hpf_endfile(10)"),
        "{at}"
    );
}

#[test]
fn labels_that_end_loops_go_behind_what_the_statement_becomes() {
    let lines = |statements: &str| joined(&becomes(statements));
    let looped = lines("do 30 i = 1, 3\n30 write (10) x, a\ngoto 3");
    assert!(looped.ends_with("\n30 continue\ngoto 3"), "{looped}");
    let jumped = lines("goto 30\n30 write (10) x, a");
    assert!(
        jumped.starts_with("goto 30\n30 call pario_hpf_write_same(10, x)\ncall"),
        "{jumped}"
    );
    // The loop of another procedure has labels of its own.
    let other = lines("30 write (10) x, a\nend\nsubroutine s()\ndo 30 i = 1, 3\n30 continue");
    assert!(other.starts_with("30 call"), "{other}");
    let (line, character, message) =
        refused("do 30 i = 1, 3\nif (i == 2) goto 30\n30 write (10) x, a");
    assert_eq!((line, character), (3, 4), "{message}");
}

#[test]
fn units_are_followed_through_constants_modules_and_arguments() {
    let text = "module files\ninteger, parameter :: lun = 30\ninteger :: shared, other\nend module\nprogram p\nuse files\nreal :: a(8)\n!hpf$ distribute a(block) onto q(2)\nopen (30, form='unformatted')\nwrite (lun) a\nopen (newunit=shared, form='unformatted', file='s')\nopen (newunit=other, file='t')\nopen (40, form='unformatted')\ncall fill(40, a)\nif (x > 0) call done(unit=40)\ncall s()\nend program\nsubroutine s()\nuse files\nreal :: b(8)\n!hpf$ distribute b(block) onto q(2)\nwrite (shared) b\nwrite (other, *) 'text'\nend subroutine\nsubroutine fill(u, c)\ninteger :: u\nreal :: c(8)\n!hpf$ distribute c(block) onto q(2)\nwrite (u) c\ncall more(1, u)\nend subroutine\nsubroutine more(n, v)\nwrite (v) n\nend subroutine\nsubroutine done(unit)\nclose (unit)\nend subroutine\n";
    let options = Options {
        hints: Hints::Omitted,
        ..Options::default()
    };
    let done = translate(text, &options).unwrap_or_else(|e| panic!("{e}"));
    for part in [
        "call pario_hpf_open(unit=30, form='unformatted')",
        "call pario_hpf_write(lun, a",
        "call pario_hpf_open(newunit=shared, file='s', form='unformatted')",
        "\nopen (newunit=other, file='t')\n",
        "call pario_hpf_open(unit=40, form='unformatted')",
        "call pario_hpf_write(shared, b",
        "\nwrite (other, *) 'text'\n",
        "call pario_hpf_write(u, c",
        "call pario_hpf_write_same(v, n)",
        "call pario_hpf_close(unit)",
    ] {
        assert!(done.text.contains(part), "{part}: {}", done.text);
    }
}

#[test]
fn what_is_printed_stays_and_is_noted() {
    let text = around(
        "character(80) :: line\nprint *, x, a\nwrite (*, *) a(3)\nwrite (6, '(f5.1)') x\nwrite (line, *) a\nread (line, *) a\nwrite (10) a",
    );
    let done = translate(&text, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    let places: Vec<(usize, usize)> = done
        .notes
        .iter()
        .map(|note| (note.line - 4, note.character))
        .collect();
    assert_eq!(places, [(2, 13), (3, 14)]);
    assert!(
        done.notes[0]
            .message
            .contains("prints what it has of the distributed array a")
    );
    let stays = &text[..text.find("write (10)").unwrap()]["program p".len()..];
    assert!(done.text.contains(stays), "{}", done.text);
    assert_eq!(done.statements.len(), 1);
}

#[test]
fn lines_are_no_longer_than_their_form_allows() {
    let name = "n".repeat(30);
    for (form, width, head, end, next, times) in [
        (Form::Free, 132, "", " &", "", 60),
        (Form::Fixed, 72, "      ", "", "     &", 6),
    ] {
        for depth in [0, 9, 18, 27] {
            let blanks = " ".repeat(depth);
            let quotes = "it''s ".repeat(times);
            let text = format!(
                "{head}program p\n{head}real a(8)\n!hpf$ distribute a(cyclic({name})) onto q(2)\n\
                 {head}{blanks}open (10,{end}\n{next}file='{quotes}',{end}\n{next}form='unformatted')\n\
                 {head}if ({name}>1{end}\n{next}.and.{name}<9{end}\n{next}.or.{name}==0) write (10) a\n{head}end program\n"
            );
            let options = Options {
                form,
                ..Options::default()
            };
            let done = translate(&text, &options).unwrap_or_else(|e| panic!("{e}"));
            for line in done.text.lines().filter(|line| !text.contains(line)) {
                assert!(line.len() <= width, "{} characters: {line}", line.len());
            }
            let joined = match form {
                Form::Free => joined(&done.text),
                Form::Fixed => done.text.replace("\n     &", "").replace("' //'", ""),
            };
            assert!(joined.contains(&quotes), "{}", done.text);
            assert_eq!(joined.matches("pario_hpf_text").count(), 2, "{joined}");
        }
    }
}

#[test]
fn everything_else_stays_byte_for_byte() {
    for text in [
        "",
        "program p\nwrite (10) a\nopen (10)\nend\n",
        "! write (10) a\nprogram p\nreal a(8)\n!hpf$ distribute a(block)\nwrite (*, *) 'write (10) a', a(3), \"it's\"\nx = 'open (10)&\n  & and so on'\r\nread = 3\nwrite(1) = 4\nopen (11, file='x')\nend program\n",
        "#include \"x.h\"\n\tif (x) then\n",
        "program p\nreal a(8)\n!hpf$ distribute a(cyclic)\ncall s(a)\nend\nsubroutine s(a)\nreal a(8)\nwrite (10) a\nend\n",
    ] {
        for form in [Form::Free, Form::Fixed] {
            let options = Options {
                form,
                ..Options::default()
            };
            let done = translate(text, &options).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(done.text, text);
            assert!(done.statements.is_empty());
        }
    }
    // Whatever is cut off, there is an answer.
    let whole = around(
        "open (10, file='f', form='unformatted')\nif (x > 1) then\nx = 1\nread (10, end=5) x, a\nend if\n5 close (10)",
    );
    for end in 0..whole.len() {
        for form in [Form::Free, Form::Fixed] {
            let _ = translate(
                &whole[..end],
                &Options {
                    form,
                    ..Options::default()
                },
            );
        }
    }
}

#[test]
fn values_of_the_running_program_become_parts_of_the_text() {
    let text = "subroutine s(a, n, m, sizes)\ninteger :: n, m, sizes(4), b(n)\nreal :: a(0:n)\n!hpf$ processors p(number_of_processors())\n!hpf$ template t(0:2*n)\n!hpf$ distribute t(cyclic(m)) onto p\n!hpf$ align a(i) with t(2*i+m)\n!hpf$ distribute b(gen_block(sizes)) onto p\nwrite (10) a, b\nend subroutine\n";
    let options = Options {
        hints: Hints::Omitted,
        ..Options::default()
    };
    let text = joined(&translate(text, &options).unwrap().text);
    for part in [
        "processors p(' // pario_hpf_text(pario_hpf_processes()) // ')",
        "template t(0:2*' // pario_hpf_text(n) // ')",
        "distribute t(cyclic(' // pario_hpf_text(m) // ')) onto p",
        "align a(i) with t(2*i+' // pario_hpf_text(m) // ')",
        "dimension a(' // pario_hpf_bounds(lbound(a), ubound(a)) // ')",
        "distribute b(gen_block(' // pario_hpf_text(sizes) // ')) onto p",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn directives_of_modules_and_hosts_are_seen() {
    let text = "module m\nreal :: a(8)\n!hpf$ distribute a(block) onto q(2)\nend module\nsubroutine s\nuse m\nwrite (10) a\nend subroutine\nprogram p\nreal :: b(4)\n!hpf$ distribute b(block) onto q(2)\ncall t()\ncontains\nsubroutine t()\nread (11) b\nend subroutine\nend program\n";
    let options = Options {
        hints: Hints::Omitted,
        ..Options::default()
    };
    let done = translate(text, &options).unwrap();
    assert_eq!(done.statements.len(), 2);
    assert!(
        done.text
            .contains("subroutine s\n  use pario_hpf\nuse m\ncall pario_hpf_write(10, a"),
        "{}",
        done.text
    );
    assert!(
        done.text
            .contains("program p\n  use pario_hpf\nreal :: b(4)"),
        "{}",
        done.text
    );
    assert_eq!(done.text.matches("use pario_hpf").count(), 2);
}
