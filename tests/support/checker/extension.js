// A checker of Python files for tests: a line that ends in `# without NAME` is an error once NAME is assigned.
const { Diagnostic, DiagnosticSeverity, Range, languages, workspace } = require("vscode");

/** Later than an editor asks for the next edit and its place. */
const DELAY_MS = 1500;

exports.activate = function ({ subscriptions }) {
  const found = languages.createDiagnosticCollection("checker");
  const check = (document) => {
    if (document.languageId === "python") found.set(document.uri, diagnostics(document));
  };
  const checkSoon = (document) => setTimeout(() => check(document), DELAY_MS);
  workspace.textDocuments.forEach(checkSoon);
  subscriptions.push(
    found,
    workspace.onDidOpenTextDocument(checkSoon),
    workspace.onDidChangeTextDocument(({ document }) => checkSoon(document)),
  );
};

function diagnostics(document) {
  const text = document.getText();
  return text.split("\n").flatMap((line, number) => {
    const name = /# without (\w+)$/.exec(line)?.[1];
    if (!name || !new RegExp(`^${name} = `, "m").test(text)) return [];
    return [new Diagnostic(new Range(number, 0, number, line.length), `${name} is assigned`, DiagnosticSeverity.Error)];
  });
}
