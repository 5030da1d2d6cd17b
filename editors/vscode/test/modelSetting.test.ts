import assert from "node:assert/strict";
import { test } from "node:test";
import { chosen, isSet } from "../src/modelSetting";

test("a workspace's settings choose among the installed models only", () => {
  for (const value of ["mine", "./evil", "evil/", "/tmp/evil", "~/evil", "../evil", "installed:evil"]) {
    assert.equal(chosen({ globalValue: "/home/me/model", workspaceValue: value }), `installed:${value}`);
    assert.equal(chosen({ workspaceFolderValue: value }), `installed:${value}`);
  }
});

test("a workspace's settings may choose the bundled model, also by a value that is no text", () => {
  for (const value of ["bundled", null, 7, {}, ["evil"]]) assert.equal(chosen({ workspaceValue: value }), null);
});

test("a workspace's settings may give next edits the model of the fills", () => {
  for (const value of ["same", null, 7]) assert.equal(chosen({ workspaceValue: value }, "same"), null);
  assert.equal(chosen({ workspaceValue: "/tmp/evil" }, "same"), "installed:/tmp/evil");
});

test("the user's own settings may name a folder", () => {
  assert.equal(chosen({ globalValue: "/home/me/model" }), "/home/me/model");
  assert.equal(chosen({ globalValue: null }), null);
});

test("without a value nothing is set", () => {
  assert.equal(isSet({}), false);
  assert.equal(isSet(undefined), false);
  assert.equal(isSet({ globalValue: null }), true);
});
