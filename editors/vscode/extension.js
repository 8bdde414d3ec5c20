// Starts `cntkpy lsp` for files of the language "cntk" and for project files.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const command = workspace.getConfiguration("cntkpy").get("command");
  client = new LanguageClient(
    "cntkpy",
    { command, args: ["lsp"] },
    {
      documentSelector: [
        { scheme: "file", language: "cntk" },
        { scheme: "file", pattern: "**/cntkpy.toml" },
        { scheme: "file", pattern: "**/pyproject.toml" },
      ],
    },
  );
  return client.start();
};

exports.deactivate = () => client?.stop();
