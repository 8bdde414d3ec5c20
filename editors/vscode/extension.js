// Starts `cntkpy lsp` for files of the language "cntk".
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const command = workspace.getConfiguration("cntkpy").get("command");
  client = new LanguageClient(
    "cntkpy",
    { command, args: ["lsp"] },
    { documentSelector: [{ scheme: "file", language: "cntk" }] },
  );
  return client.start();
};

exports.deactivate = () => client?.stop();
