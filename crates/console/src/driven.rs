//! A process that is driven line by line: an order is a line on its input, an answer a line on its output, and
//! the end of its input is its end.
//!
//! Giving an order to several before the first answer is read makes them work at the same time.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::{Error, output};
use job::Process;

/// How long a process may take to end before it is ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// See the [module](self).
#[derive(Debug)]
pub struct DrivenProcess {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl DrivenProcess {
    /// Starts it.
    pub fn start(mut command: Command) -> Result<DrivenProcess, Error> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("cannot start a process: {e}"))?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or("a process has no output")?;
        Ok(DrivenProcess {
            child,
            input,
            output: BufReader::new(output),
        })
    }

    /// Gives it an order. That it has ended is told when its answer is missing.
    pub fn tell(&mut self, line: &str) {
        if let Some(input) = &mut self.input {
            let _ = writeln!(input, "{line}").and_then(|()| input.flush());
        }
    }

    /// Its next answer; `None` if it has ended.
    pub fn answer(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.output.read_line(&mut line);
        matches!(read, Ok(1..)).then(|| line.trim_end_matches('\n').to_owned())
    }

    /// Lets it end.
    pub fn close(&mut self) {
        self.input = None;
    }
}

impl Drop for DrivenProcess {
    fn drop(&mut self) {
        self.close();
        if let Some(process) = Process::with_number(self.child.id()) {
            process.wait_for_end(PATIENCE);
        }
        // Does nothing to one that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Is such a process: does what each line of the input says until it ends, and answers with a line of JSON.
pub fn obey(mut order: impl FnMut(&str) -> Result<Value, Error>) -> Result<(), Error> {
    for line in std::io::stdin().lock().lines() {
        let answer = match order(&line?) {
            Ok(answer) => answer,
            Err(error) => json!({ "error": error.to_string() }),
        };
        output::print(&format!("{answer}\n"))?;
    }
    Ok(())
}

/// Processes that get their orders together.
#[derive(Debug, Default)]
pub struct Group(Vec<DrivenProcess>);

impl Group {
    /// One more.
    pub fn add(&mut self, command: Command) -> Result<(), Error> {
        self.0.push(DrivenProcess::start(command)?);
        Ok(())
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One order for each, given to all before any answer is read; all answers, or the first trouble: an `error`, or
    /// bytes that were `wrong`. All answers are taken before anything is told, so that the next round gets its own.
    pub fn all(&mut self, order: impl Fn(usize) -> Value) -> Result<Vec<Value>, Error> {
        for (rank, member) in self.0.iter_mut().enumerate() {
            member.tell(&order(rank).to_string());
        }
        let mut answers = Vec::new();
        let mut trouble = None;
        for (rank, member) in self.0.iter_mut().enumerate() {
            let line = member.answer().unwrap_or_default();
            let answer: Value = serde_json::from_str(&line)
                .map_err(|_| format!("process {rank} ended before it had answered"))?;
            let wrong = answer["wrong"].as_u64();
            if let Some(error) = answer["error"].as_str() {
                trouble.get_or_insert(format!("process {rank}: {error}"));
            } else if wrong != Some(0) {
                let n = wrong.map_or("no answer about".into(), |n| n.to_string());
                trouble.get_or_insert(format!("process {rank} found {n} wrong bytes"));
            }
            answers.push(answer);
        }
        trouble.map_or(Ok(answers), |text| Err(text.into()))
    }
}

impl Drop for Group {
    /// All are told to end before the first is waited for.
    fn drop(&mut self) {
        self.0.iter_mut().for_each(DrivenProcess::close);
    }
}
