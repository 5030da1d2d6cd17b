import assert from "node:assert/strict";
import { test } from "node:test";
import { setCommand } from "../src/buttons";

test("in a remote window the program is set in the remote machine's settings", () => {
  assert.equal(setCommand(undefined).command, "workbench.action.openSettings");
  for (const name of ["ssh-remote", "wsl", "dev-container"]) {
    assert.equal(setCommand(name).command, "workbench.action.openRemoteSettings");
    assert.deepEqual(setCommand(name).args, [{ query: "mercury.command" }]);
  }
});
