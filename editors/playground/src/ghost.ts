// Grey text at the cursor: taken with Tab or by pointing at it, dismissed with Escape or by typing something else.
import { Prec, StateEffect, StateField, type Extension } from "@codemirror/state";
import { Decoration, EditorView, WidgetType, keymap, type DecorationSet } from "@codemirror/view";

interface Ghost {
  readonly at: number;
  readonly text: string;
  /** Whether an editor would not show it unasked. */
  readonly isSilent: boolean;
}

/** Show this text, or none. */
export const setGhost = StateEffect.define<Ghost | null>();

class GhostWidget extends WidgetType {
  constructor(
    private readonly text: string,
    private readonly isSilent: boolean,
  ) {
    super();
  }

  override eq(other: GhostWidget): boolean {
    return other.text === this.text && other.isSilent === this.isSilent;
  }

  override toDOM(view: EditorView): HTMLElement {
    const shown = document.createElement("span");
    shown.className = this.isSilent ? "cm-ghost silent" : "cm-ghost";
    shown.addEventListener("pointerdown", (event) => {
      event.preventDefault(); // the cursor stays, and so does a touch screen's keyboard
      accept(view);
    });
    shown.textContent = this.text;
    shown.setAttribute("aria-label", `suggestion: ${this.text}`);
    return shown;
  }
}

const ghost = StateField.define<Ghost | null>({
  create: () => null,
  update(shown, transaction) {
    for (const effect of transaction.effects) if (effect.is(setGhost)) return effect.value;
    if (shown === null) return null;
    const cursor = transaction.state.selection.main;
    if (!transaction.docChanged) return cursor.empty && cursor.head === shown.at ? shown : null;
    const typed = transaction.state.sliceDoc(shown.at, cursor.head); // what is typed as suggested stays shown
    const goesOn = typed.length > 0 && typed.length < shown.text.length && shown.text.startsWith(typed);
    return goesOn ? { ...shown, at: cursor.head, text: shown.text.slice(typed.length) } : null;
  },
  provide: (field) =>
    EditorView.decorations.from(field, (shown): DecorationSet => {
      if (shown === null) return Decoration.none;
      return Decoration.set(Decoration.widget({ widget: new GhostWidget(shown.text, shown.isSilent), side: 1 }).range(shown.at));
    }),
});

/** Whether grey text is shown. */
export function hasGhost(view: EditorView): boolean {
  return view.state.field(ghost) !== null;
}

function accept(view: EditorView): boolean {
  const shown = view.state.field(ghost);
  if (shown === null) return false;
  view.dispatch({
    changes: { from: shown.at, insert: shown.text },
    selection: { anchor: shown.at + shown.text.length },
    effects: setGhost.of(null),
    scrollIntoView: true,
    userEvent: "input.complete",
  });
  return true;
}

function dismiss(view: EditorView): boolean {
  if (!hasGhost(view)) return false;
  view.dispatch({ effects: setGhost.of(null) });
  return true;
}

export const ghostText: Extension = [
  ghost,
  Prec.highest(
    keymap.of([
      { key: "Tab", run: accept },
      { key: "Escape", run: dismiss },
    ]),
  ),
];
