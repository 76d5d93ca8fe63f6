import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SplitDocument, SplitPassage, SplittingRule } from '../../../indexer/prepare/rules/splitting-rule.ts';
import { parseDocument, type SourceDocument } from '../../../indexer/prepare/source-document.ts';

/** The document that Trawl reads from the line of this value. */
export function documentOf(value: unknown): SourceDocument {
  const parsed = parseDocument(JSON.stringify(value));
  if (!parsed.ok) throw new Error(parsed.reason);
  return parsed.document;
}

/** The passages of a document; an error if the rule refuses it. */
export function split(rule: SplittingRule, value: unknown): readonly SplitPassage[] {
  const result: SplitDocument = rule.split(documentOf(value));
  if (!result.ok) throw new Error(result.reason);
  return result.passages;
}

export function texts(rule: SplittingRule, value: unknown): string[] {
  return split(rule, value).map(({ text }) => text);
}

/** `w0 w1 …`, from `from` to before `to`. */
export function numbered(to: number, from = 0): string {
  return Array.from({ length: to - from }, (_, i) => `w${from + i}`).join(' ');
}

/** Writes values as JSON Lines and returns the path. */
export function writeLines(folder: string, name: string, values: readonly unknown[]): string {
  const path = join(folder, name);
  writeFileSync(path, values.map((value) => `${JSON.stringify(value)}\n`).join(''));
  return path;
}

/** A page in the format of KILT. */
export const KILT_PAGE = {
  wikipedia_id: '290',
  wikipedia_title: 'Albedo',
  text: [
    'Albedo\n',
    'Albedo is the measure of reflection.\n',
    'Section::::Terrestrial albedo.\n',
    'Any albedo in visible light falls within a range. It varies.\n',
    'Section::::Terrestrial albedo.:Trees.\n',
    'BULLET::::- pines are dark\n',
    'BULLET::::- birches are not\n',
  ],
};
