import { closestTo } from './closest.ts';

/** Names of options for the same setting, here and in other tools. */
const SYNONYMS: readonly (readonly string[])[] = [
  ['k', 'topk', 'top-k', 'top_k', 'top-n', 'top_n', 'topn', 'limit', 'num-results', 'num_results'],
];

/** The option that was probably meant by an unknown one: one for the same setting, else the closest name; undefined if there is none. */
export function suggestOption(name: string, names: readonly string[]): string | undefined {
  const group = SYNONYMS.find((synonyms) => synonyms.includes(name)) ?? [];
  return names.find((known) => group.includes(known)) ?? closestTo(name, names);
}
