// The languages that can be chosen: each has a path, by which the server knows it, and a text with a gap.
import { javascript } from "@codemirror/lang-javascript";
import { python } from "@codemirror/lang-python";
import type { Extension } from "@codemirror/state";

export interface Sample {
  readonly path: string;
  /** Up to the cursor. */
  readonly before: string;
  readonly after: string;
  readonly highlighting: Extension;
}

export const SAMPLES: Readonly<Record<string, Sample>> = {
  Python: {
    path: "playground.py",
    before: `class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)

    def pop(self):
        return `,
    after: `

    def is_empty(self):
        return len(self.items) == 0
`,
    highlighting: python(),
  },
  TypeScript: {
    path: "playground.ts",
    before: `export class Stack<T> {
    private items: T[] = [];

    push(item: T): void {
        this.items.push(item);
    }

    pop(): T | undefined {
        return `,
    after: `
    }
}
`,
    highlighting: javascript({ typescript: true }),
  },
  Go: {
    path: "playground.go",
    before: `package stack

type Stack struct {
	items []int
}

func (s *Stack) Push(item int) {
	s.items = append(s.items, item)
}

func (s *Stack) Len() int {
	return `,
    after: `
}
`,
    highlighting: [],
  },
  Rust: {
    path: "playground.rs",
    before: `pub struct Stack {
    items: Vec<i32>,
}

impl Stack {
    pub fn push(&mut self, item: i32) {
        self.items.push(item);
    }

    pub fn pop(&mut self) -> Option<i32> {
        `,
    after: `
    }
}
`,
    highlighting: [],
  },
};
