// The page: an editor with grey text from the server, and how that text came about.
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { HighlightStyle, bracketMatching, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState } from "@codemirror/state";
import { EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { Canvas } from "./canvas";
import { ghostText, hasGhost, setGhost } from "./ghost";
import { SAMPLES, type Sample } from "./samples";
import { Locked, fill, modelName, unlock } from "./server";
import { note } from "./times";

const PAUSE_MS = 120;

function find<T extends HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

const effort = find<HTMLSelectElement>("effort");
const severalLines = find<HTMLInputElement>("lines");
const languages = find<HTMLSelectElement>("language");
const said = find("said");
const canvas = new Canvas();

let timer: number | undefined;
let asking = new AbortController();

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "light-dark(#8a3b8f, #d7a3dc)" },
  { tag: [tags.string, tags.regexp], color: "light-dark(#3d6b35, #a5cc98)" },
  { tag: [tags.number, tags.bool, tags.null], color: "light-dark(#9a5a1e, #e0b184)" },
  { tag: tags.comment, color: "light-dark(#7d7a72, #8d8a83)", fontStyle: "italic" },
  { tag: [tags.function(tags.variableName), tags.function(tags.definition(tags.variableName))], color: "light-dark(#2a5db0, #8ab4f8)" },
  { tag: [tags.className, tags.typeName], color: "light-dark(#1f6f78, #7fc8d0)" },
]);

const looks = EditorView.theme({
  ".cm-scroller": { font: "inherit" },
  ".cm-gutters": { background: "transparent", border: "none", color: "var(--soft)" },
  ".cm-activeLine, .cm-activeLineGutter": { background: "color-mix(in oklab, var(--line) 35%, transparent)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  "&.cm-focused .cm-selectionBackground, ::selection": {
    background: "color-mix(in oklab, var(--focus) 30%, transparent) !important",
  },
});

const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";

languages.append(...Object.keys(SAMPLES).map((name) => new Option(name)));
const highlighting = new Compartment();

function sample(): Sample {
  return SAMPLES[languages.value] as Sample;
}

const view = new EditorView({
  parent: find("code"),
  state: EditorState.create({
    doc: sample().before + sample().after,
    selection: { anchor: sample().before.length },
    extensions: [
      EditorView.cspNonce.of(nonce),
      EditorView.contentAttributes.of({ "aria-label": "code", "aria-describedby": "said" }),
      EditorView.lineWrapping,
      lineNumbers(),
      history(),
      bracketMatching(),
      highlightActiveLine(),
      indentUnit.of("    "),
      highlighting.of(sample().highlighting),
      syntaxHighlighting(colours),
      looks,
      ghostText,
      keymap.of([{ key: "Ctrl-Space", run: () => (void ask(), true) }, ...defaultKeymap, ...historyKeymap]),
      EditorView.updateListener.of((update) => {
        if (update.docChanged || update.selectionSet) askSoon();
      }),
    ],
  }),
});

function askSoon(): void {
  asking.abort();
  window.clearTimeout(timer);
  timer = window.setTimeout(() => {
    if (!hasGhost(view)) void ask();
  }, PAUSE_MS);
}

async function ask(): Promise<void> {
  const cursor = view.state.selection.main;
  if (!cursor.empty) return;
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  const at = cursor.head;
  const gap = {
    prompt: view.state.sliceDoc(0, at),
    suffix: view.state.sliceDoc(at),
    path: sample().path,
    effort: effort.value,
    several_lines: severalLines.checked,
  };
  const began = performance.now();
  let isFirst = true;
  try {
    const answer = await fill(
      gap,
      (step) => {
        if (isFirst) canvas.clear();
        isFirst = false;
        canvas.add(step);
      },
      signal,
    );
    const milliseconds = performance.now() - began;
    note(milliseconds);
    const steps = isFirst ? answer.steps : canvas.count; // one that was kept from before has no steps to show
    const count = steps === 1 ? "1 step" : `${steps} steps`;
    const sure = `${Math.round(100 * answer.confidence)} % sure`;
    const silent = answer.silence === null ? "" : `. An editor shows nothing here: ${answer.silence}`;
    said.textContent = answer.text ? `${count}, ${milliseconds.toFixed(0)} ms, ${sure}${silent}` : "the model adds nothing here";
    view.dispatch({ effects: setGhost.of(answer.text ? { at, text: answer.text, isSilent: silent !== "" } : null) });
  } catch (error) {
    if (signal.aborted) return;
    if (error instanceof Locked) lock();
    else said.textContent = error instanceof Error ? error.message : String(error);
  }
}

function lock(): void {
  find("locked").hidden = false;
  find("token").focus();
}

async function begin(): Promise<void> {
  try {
    find("model").textContent = await modelName();
    find("locked").hidden = true;
    view.focus();
    await ask();
  } catch (error) {
    if (error instanceof Locked) lock();
    else find("model").textContent = error instanceof Error ? error.message : String(error);
  }
}

find("locked").addEventListener("submit", (event) => {
  event.preventDefault();
  unlock(find<HTMLInputElement>("token").value);
  void begin();
});
effort.addEventListener("change", () => void ask());
severalLines.addEventListener("change", () => void ask());
languages.addEventListener("change", () => {
  const { before, after, highlighting: colouring } = sample();
  view.dispatch({
    changes: { from: 0, to: view.state.doc.length, insert: before + after },
    selection: { anchor: before.length },
    effects: [highlighting.reconfigure(colouring), setGhost.of(null)],
  });
  view.focus();
});

void begin();
