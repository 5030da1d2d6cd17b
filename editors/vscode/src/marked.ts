/** The text that an item inserts; of a snippet its source. */
export function textOf(item: { readonly insertText: string | { readonly value: string } }): string {
  return typeof item.insertText === "string" ? item.insertText : item.insertText.value;
}

/** What of a text is still to come after what was typed; undefined where something else was, or all of it. */
export function restOf(text: string, typed: string): string | undefined {
  return text.startsWith(typed) && text.length > typed.length ? text.slice(typed.length) : undefined;
}

/** Whether a text is the rest of the one that the user has had shown: that stays in sight while it is typed. */
export function goesOn(shown: string, text: string): boolean {
  return text !== "" && shown.endsWith(text);
}
