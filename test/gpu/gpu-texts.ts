import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../src/base/package-root.ts';
import { seededRandom } from '../helpers/seeded-random.ts';

/** Texts that are hard for a tokenizer or a batch. */
const HARD = [
  'a',
  'Ĳ',
  '東京 서울 القاهرة Київ',
  '😀😀😀',
  '   spaces   ',
  'x'.repeat(3000),
  '1+1=2, "quoted"; [SEP] </s> <|endoftext|>',
];

/** Passages of the sample corpus. */
export function samplePassages(): string[] {
  return readFileSync(join(packageRoot, 'corpus', 'sample', 'passages.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => {
      const { title, text } = JSON.parse(line) as { title: string; text: string };
      return `${title}\n${text}`;
    });
}

/** Hard texts, passages, and joined passages of up to the 512 tokens of the models, in an order that mixes lengths. */
export function comparedTexts(count: number): string[] {
  const passages = samplePassages();
  const random = seededRandom(5);
  const texts = Array.from({ length: Math.max(0, count - HARD.length) }, (_, i) => {
    const joined =
      i % 5 === 0 ? passages.slice(i % 200, (i % 200) + 1 + (i % 8)).join(' ') : passages[i % passages.length]!;
    return i % 3 === 0 ? joined.slice(0, 5 + Math.floor(random() * 200)) : joined;
  });
  return [...HARD, ...texts]
    .map((text) => ({ text, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ text }) => text);
}

/** Texts that are longer than `tokens` tokens, so that truncation makes all equally long. */
export function longTexts(count: number, tokens: number): string[] {
  const words = samplePassages().join(' ').split(/\s+/);
  return Array.from({ length: count }, (_, i) =>
    Array.from({ length: tokens }, (_, j) => words[(i * 31 + j) % words.length]).join(' '),
  );
}
