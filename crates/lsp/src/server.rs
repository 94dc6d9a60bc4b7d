//! The protocol: messages of a client in, answers and diagnostics out. All answers come from elsewhere.
//!
//! One thread reads a message after the other. Changes are compiled when no further message waits, or when a request needs
//! to know: while a client types fast, not every letter is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types::notification::{self as notify, Notification as _};
use lsp_types::request::{self as ask, Request as _};
use lsp_types::*;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::complete::complete;
use crate::outline::outline;
use crate::paths::{path_of, uri_of};
use crate::session::{Session, Settings};
use crate::text::{Encoding, Text};
use crate::{diagnostics, query, rename};

/// An error that ends the server, as a sentence.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Serves a client on standard input and output until it says goodbye.
///
/// `options` are those of the command line, to which the client may add; copies of the files that are built into the
/// compiler are written to `library` when a client is sent there. Fails if the client does not follow the protocol.
pub fn serve_stdio(options: compile::Options, library: &Path) -> Result<(), Failure> {
    let (connection, threads) = Connection::stdio();
    serve(&connection, options, library)?;
    // The writer ends with the connection.
    drop(connection);
    threads.join()?;
    Ok(())
}

/// Serves the client at the other end of a connection, as [`serve_stdio`] does.
pub fn serve(
    connection: &Connection,
    options: compile::Options,
    library: &Path,
) -> Result<(), Failure> {
    let (id, params) = connection.initialize_start()?;
    let params: InitializeParams = serde_json::from_value(params)?;
    let settings = settings(&params, options, library)?;
    let answer = json!({
        "capabilities": capabilities(settings.encoding),
        "serverInfo": {"name": "holdfast"},
    });
    connection.initialize_finish(id, answer)?;
    let mut server = Server {
        connection,
        session: Session::new(settings),
        versions: BTreeMap::new(),
        published: BTreeMap::new(),
    };
    server.run()
}

/// The settings that a client may give under `initializationOptions`, besides those of the command line.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct ClientOptions {
    include_paths: Vec<PathBuf>,
    defines: BTreeMap<String, String>,
    main: Option<PathBuf>,
}

/// Puts together what the command line and the client say.
fn settings(
    params: &InitializeParams,
    mut options: compile::Options,
    library: &Path,
) -> Result<Settings, Failure> {
    let given = params.initialization_options.clone();
    let given: ClientOptions = match given {
        None | Some(Value::Null) => ClientOptions::default(),
        Some(value) => serde_json::from_value(value)
            .map_err(|error| format!("initializationOptions: {error}"))?,
    };
    let folders = params.workspace_folders.iter().flatten();
    let mut folders: Vec<PathBuf> = folders.map(|f| path_of(&f.uri)).collect();
    #[allow(deprecated, reason = "older clients say it this way")]
    folders.extend(params.root_uri.iter().map(path_of));
    let base = folders.first().cloned().unwrap_or_default();
    options
        .include_dirs
        .extend(given.include_paths.iter().map(|dir| base.join(dir)));
    options.defines.extend(given.defines);
    let encodings = params.capabilities.general.as_ref();
    let encodings = encodings.and_then(|g| g.position_encodings.as_ref());
    let utf8 = encodings.is_some_and(|all| all.contains(&PositionEncodingKind::UTF8));
    Ok(Settings {
        options,
        main: given.main.map(|path| base.join(path)),
        folders,
        library: library.to_path_buf(),
        encoding: if utf8 {
            Encoding::Utf8
        } else {
            Encoding::Utf16
        },
    })
}

fn capabilities(encoding: Encoding) -> ServerCapabilities {
    let sync = TextDocumentSyncOptions {
        open_close: Some(true),
        change: Some(TextDocumentSyncKind::INCREMENTAL),
        save: Some(TextDocumentSyncSaveOptions::Supported(true)),
        ..TextDocumentSyncOptions::default()
    };
    ServerCapabilities {
        position_encoding: Some(match encoding {
            Encoding::Utf8 => PositionEncodingKind::UTF8,
            Encoding::Utf16 => PositionEncodingKind::UTF16,
        }),
        text_document_sync: Some(TextDocumentSyncCapability::Options(sync)),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        definition_provider: Some(OneOf::Left(true)),
        references_provider: Some(OneOf::Left(true)),
        document_symbol_provider: Some(OneOf::Left(true)),
        document_formatting_provider: Some(OneOf::Left(true)),
        rename_provider: Some(OneOf::Right(RenameOptions {
            prepare_provider: Some(true),
            work_done_progress_options: WorkDoneProgressOptions::default(),
        })),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some(vec![".".to_string()]),
            ..CompletionOptions::default()
        }),
        ..ServerCapabilities::default()
    }
}

struct Server<'a> {
    connection: &'a Connection,
    session: Session,
    versions: BTreeMap<PathBuf, i32>,
    /// The diagnostics that the client has, by file.
    published: BTreeMap<PathBuf, Vec<Diagnostic>>,
}

impl Server<'_> {
    fn run(&mut self) -> Result<(), Failure> {
        loop {
            if self.connection.receiver.is_empty() {
                self.publish()?;
            }
            let Ok(message) = self.connection.receiver.recv() else {
                return Ok(());
            };
            match message {
                Message::Request(request) => {
                    if self.connection.handle_shutdown(&request)? {
                        return Ok(());
                    }
                    let answer = self.answer(request);
                    self.connection.sender.send(answer.into())?;
                }
                Message::Notification(notification) => self.notified(notification)?,
                Message::Response(_) => {}
            }
        }
    }

    /// Compiles what changed, and sends the diagnostics that the client does not have yet.
    fn publish(&mut self) -> Result<(), Failure> {
        if !self.session.refresh() {
            return Ok(());
        }
        let mut all: BTreeMap<PathBuf, Vec<Diagnostic>> = BTreeMap::new();
        for snapshot in self.session.snapshots() {
            for (path, found) in diagnostics::by_file(snapshot) {
                let list = all.entry(path).or_default();
                list.extend(
                    found
                        .into_iter()
                        .filter(|d| !list.contains(d))
                        .collect::<Vec<_>>(),
                );
            }
        }
        let gone = self
            .published
            .keys()
            .filter(|path| !all.contains_key(*path));
        let gone: Vec<PathBuf> = gone.cloned().collect();
        all.extend(gone.into_iter().map(|path| (path, Vec::new())));
        for (path, list) in all {
            let open = self.versions.get(&path).copied();
            let known = self.published.get(&path);
            // An open document gets them after every change, which tells the client that they are those of its version.
            if open.is_none() && known.map_or(&[][..], Vec::as_slice) == list {
                continue;
            }
            if let Some(uri) = uri_of(&path) {
                let params = PublishDiagnosticsParams::new(uri, list.clone(), open);
                self.notify::<notify::PublishDiagnostics>(params)?;
            }
            self.published.insert(path, list);
        }
        Ok(())
    }

    fn notify<N: notify::Notification>(&self, params: N::Params) -> Result<(), Failure> {
        let message = Notification::new(N::METHOD.to_string(), params);
        Ok(self.connection.sender.send(message.into())?)
    }

    fn notified(&mut self, notification: Notification) -> Result<(), Failure> {
        match &*notification.method {
            notify::DidOpenTextDocument::METHOD => {
                let params: DidOpenTextDocumentParams = from(notification.params)?;
                let path = path_of(&params.text_document.uri);
                self.versions
                    .insert(path.clone(), params.text_document.version);
                self.session
                    .set(&path, Text::new(params.text_document.text));
            }
            notify::DidChangeTextDocument::METHOD => {
                let params: DidChangeTextDocumentParams = from(notification.params)?;
                self.changed(params);
            }
            notify::DidCloseTextDocument::METHOD => {
                let params: DidCloseTextDocumentParams = from(notification.params)?;
                let path = path_of(&params.text_document.uri);
                self.versions.remove(&path);
                self.session.close(&path);
            }
            // Files that no document is open for may have changed, too.
            notify::DidSaveTextDocument::METHOD | notify::DidChangeWatchedFiles::METHOD => {
                self.session.forget();
            }
            _ => {}
        }
        Ok(())
    }

    fn changed(&mut self, params: DidChangeTextDocumentParams) {
        let path = path_of(&params.text_document.uri);
        let encoding = self.session.settings().encoding;
        let Some(mut text) = self.session.document(&path).cloned() else {
            return;
        };
        for change in params.content_changes {
            text = match change.range {
                Some(range) => text.edited(range, &change.text, encoding),
                None => Text::new(change.text),
            };
        }
        self.versions
            .insert(path.clone(), params.text_document.version);
        self.session.set(&path, text);
    }

    fn answer(&mut self, request: Request) -> Response {
        let Request { id, method, params } = request;
        let result = match &*method {
            ask::GotoDefinition::METHOD => self.reply::<ask::GotoDefinition>(params, definition),
            ask::HoverRequest::METHOD => self.reply::<ask::HoverRequest>(params, hover),
            ask::References::METHOD => self.reply::<ask::References>(params, references),
            ask::DocumentSymbolRequest::METHOD => {
                self.reply::<ask::DocumentSymbolRequest>(params, symbols)
            }
            ask::Formatting::METHOD => self.reply::<ask::Formatting>(params, formatted),
            ask::PrepareRenameRequest::METHOD => {
                self.reply::<ask::PrepareRenameRequest>(params, prepare_rename)
            }
            ask::Rename::METHOD => self.reply::<ask::Rename>(params, renamed),
            ask::Completion::METHOD => self.reply::<ask::Completion>(params, completed),
            _ => {
                let message = format!("there is no method {method}");
                return Response::new_err(id, ErrorCode::MethodNotFound as i32, message);
            }
        };
        response(id, result)
    }

    fn reply<R: ask::Request>(
        &mut self,
        params: Value,
        answer: impl FnOnce(&mut Session, R::Params) -> Result<R::Result, String>,
    ) -> Result<Value, (ErrorCode, String)> {
        let params = from(params).map_err(|e| (ErrorCode::InvalidParams, e.to_string()))?;
        let result = answer(&mut self.session, params);
        let result = result.map_err(|e| (ErrorCode::RequestFailed, e))?;
        serde_json::to_value(result).map_err(|e| (ErrorCode::InternalError, e.to_string()))
    }
}

fn from<T: DeserializeOwned>(params: Value) -> Result<T, serde_json::Error> {
    serde_json::from_value(params)
}

fn response(id: RequestId, result: Result<Value, (ErrorCode, String)>) -> Response {
    match result {
        Ok(value) => Response::new_ok(id, value),
        Err((code, message)) => Response::new_err(id, code as i32, message),
    }
}

fn definition(
    session: &mut Session,
    params: GotoDefinitionParams,
) -> Result<Option<GotoDefinitionResponse>, String> {
    let at = params.text_document_position_params;
    let path = path_of(&at.text_document.uri);
    let snapshot = session.snapshot(&path);
    let found = snapshot.and_then(|s| query::definition(s, &path, at.position));
    if let Some(location) = &found {
        write_library(session.settings(), &path_of(&location.uri))?;
    }
    Ok(found.map(GotoDefinitionResponse::Scalar))
}

/// Writes the copy of a file that is built into the compiler, if `path` is the place of one and has not the same text.
fn write_library(settings: &Settings, path: &Path) -> Result<(), String> {
    let Ok(name) = path.strip_prefix(&settings.library) else {
        return Ok(());
    };
    let mut all = compile::libraries();
    let Some((_, text)) = all.find(|(file, _)| Path::new(file) == name) else {
        return Ok(());
    };
    if std::fs::read_to_string(path).is_ok_and(|known| known == text) {
        return Ok(());
    }
    let written =
        std::fs::create_dir_all(&settings.library).and_then(|()| std::fs::write(path, text));
    written.map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn hover(session: &mut Session, params: HoverParams) -> Result<Option<Hover>, String> {
    let at = params.text_document_position_params;
    let path = path_of(&at.text_document.uri);
    let snapshot = session.snapshot(&path);
    Ok(snapshot.and_then(|s| query::hover(s, &path, at.position)))
}

fn references(
    session: &mut Session,
    params: ReferenceParams,
) -> Result<Option<Vec<Location>>, String> {
    let at = params.text_document_position;
    let path = path_of(&at.text_document.uri);
    let with_declaration = params.context.include_declaration;
    let snapshot = session.snapshot(&path);
    Ok(snapshot.map(|s| query::references(s, &path, at.position, with_declaration)))
}

fn symbols(
    session: &mut Session,
    params: DocumentSymbolParams,
) -> Result<Option<DocumentSymbolResponse>, String> {
    let path = path_of(&params.text_document.uri);
    let snapshot = session.snapshot(&path);
    Ok(snapshot.map(|s| DocumentSymbolResponse::Nested(outline(s, &path))))
}

fn formatted(
    session: &mut Session,
    params: DocumentFormattingParams,
) -> Result<Option<Vec<TextEdit>>, String> {
    let path = path_of(&params.text_document.uri);
    let text = session.document(&path).ok_or("the document is not open")?;
    let after = syntax::format::format(text.as_str()).map_err(|refused| refused.to_string())?;
    Ok(Some(text.edits_to(&after, session.settings().encoding)))
}

fn prepare_rename(
    session: &mut Session,
    at: TextDocumentPositionParams,
) -> Result<Option<PrepareRenameResponse>, String> {
    let path = path_of(&at.text_document.uri);
    let snapshot = session.snapshot(&path).ok_or("the document is not open")?;
    let range = rename::prepare(snapshot, &path, at.position)?;
    Ok(Some(PrepareRenameResponse::Range(range)))
}

fn renamed(session: &mut Session, params: RenameParams) -> Result<Option<WorkspaceEdit>, String> {
    let at = params.text_document_position;
    let path = path_of(&at.text_document.uri);
    rename::rename(session, &path, at.position, &params.new_name).map(Some)
}

fn completed(
    session: &mut Session,
    params: CompletionParams,
) -> Result<Option<CompletionResponse>, String> {
    let at = params.text_document_position;
    let path = path_of(&at.text_document.uri);
    Ok(Some(CompletionResponse::Array(complete(
        session,
        &path,
        at.position,
    ))))
}
