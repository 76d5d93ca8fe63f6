import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../src/base/package-root.ts';

export interface DocExample {
  /** The nearest heading above it. */
  readonly section: string;
  /** The fence's language, such as `python`; '' for none. */
  readonly language: string;
  readonly code: string;
  /** The `text` block after it, which is what it prints. */
  readonly output: string | undefined;
}

/** The fenced blocks of a page in docs/, in order. A `text` block is the output of the block before it. */
export function docExamples(page: string): DocExample[] {
  const text = readFileSync(join(packageRoot, 'docs', page), 'utf8');
  const examples: DocExample[] = [];
  let section = '';
  for (const match of text.matchAll(/^(#+) (.*)$|^```(\w*)\n([\s\S]*?)^```$/gm)) {
    const [, , heading, language, code] = match;
    if (heading !== undefined) section = heading;
    else if (language === 'text') examples[examples.length - 1] = { ...examples.at(-1)!, output: code! };
    else examples.push({ section, language: language!, code: code!, output: undefined });
  }
  return examples;
}
