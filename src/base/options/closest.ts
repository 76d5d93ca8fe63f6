/** The candidate with the smallest edit distance to a misspelt word; undefined if none is close enough. */
export function closestTo(word: string, candidates: readonly string[]): string | undefined {
  const limit = Math.max(2, Math.floor(word.length / 3));
  let best: string | undefined;
  let bestDistance = limit + 1;
  for (const candidate of candidates) {
    const distance = editDistance(word, candidate);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Levenshtein distance. */
function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const current = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      current.push(Math.min(substitution, previous[j]! + 1, current[j - 1]! + 1));
    }
    previous = current;
  }
  return previous[b.length]!;
}

/** Names of options for the same setting, here and in other tools. */
const SYNONYMS: readonly (readonly string[])[] = [
  ['k', 'topk', 'top-k', 'top_k', 'top-n', 'top_n', 'topn', 'limit', 'num-results', 'num_results'],
];

/** The option that was probably meant by an unknown one: one for the same setting, else the closest name; undefined if there is none. */
export function suggestOption(name: string, names: readonly string[]): string | undefined {
  const group = SYNONYMS.find((synonyms) => synonyms.includes(name)) ?? [];
  return names.find((known) => group.includes(known)) ?? closestTo(name, names);
}
