// Starts `holdfast lsp` for P4 files, and nothing else.

const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const [command, ...args] = workspace.getConfiguration("holdfast").get("command");
  const documentSelector = [{ language: "p4" }];
  const fileEvents = workspace.createFileSystemWatcher("**/*.p4");
  client = new LanguageClient("holdfast", "Holdfast", { command, args }, { documentSelector, synchronize: { fileEvents } });
  return client.start();
};

exports.deactivate = () => client?.stop();
