/**
 * Porter's stemmer as in Lucene's PorterStemFilter: the algorithm of 1980 (M. F. Porter, An algorithm for suffix stripping, Program
 * 14(3)) with two later changes of its author: «bli» → «ble» instead of «abli» → «able», and «logi» → «log».
 *
 * Words of up to two UTF-16 units are unchanged. Every character is a consonant except a, e, i, o, u, and y after a consonant.
 */
export function porterStem(word: string): string {
  if (word.length <= 2) return word;
  let stem = removePlural(word);
  stem = removePastAndProgressive(stem);
  stem = replaceFinalY(stem);
  stem = replaceSuffix(stem, STEP_2, (before) => measure(before) > 0);
  stem = replaceSuffix(stem, STEP_3, (before) => measure(before) > 0);
  const isLong = (before: string, suffix: string): boolean =>
    measure(before) > 1 && (suffix !== 'ion' || /[st]$/.test(before));
  stem = replaceSuffix(stem, STEP_4, isLong);
  return removeFinalEAndL(stem);
}

type Suffixes = readonly (readonly [suffix: string, replacement: string])[];

/** In this order, the first suffix that a word ends in decides, even if its condition does not allow the replacement. */
const STEP_2 = suffixes(
  'ational:ate tional:tion enci:ence anci:ance izer:ize bli:ble alli:al entli:ent eli:e ousli:ous ization:ize ation:ate ' +
    'ator:ate alism:al iveness:ive fulness:ful ousness:ous aliti:al iviti:ive biliti:ble logi:log',
);
const STEP_3 = suffixes('icate:ic ative: alize:al iciti:ic ical:ic ful: ness:');
const STEP_4 = suffixes(
  'al: ance: ence: er: ic: able: ible: ant: ement: ment: ent: ion: ou: ism: ate: iti: ous: ive: ize:',
);

/** Pairs of a suffix and its replacement. */
function suffixes(pairs: string): Suffixes {
  return pairs.split(' ').map((pair) => pair.split(':') as [string, string]);
}

function isConsonant(word: string, i: number): boolean {
  const letter = word[i]!;
  return letter === 'y' ? i === 0 || !isConsonant(word, i - 1) : !'aeiou'.includes(letter);
}

/** Porter's measure m: the number of consonants that follow a vowel. */
function measure(stem: string): number {
  let count = 0;
  let afterVowel = false;
  for (let i = 0; i < stem.length; i++) {
    const consonant = isConsonant(stem, i);
    if (consonant && afterVowel) count++;
    afterVowel = !consonant;
  }
  return count;
}

function hasVowel(stem: string): boolean {
  for (let i = 0; i < stem.length; i++) if (!isConsonant(stem, i)) return true;
  return false;
}

function endsInDoubleConsonant(word: string): boolean {
  const last = word.length - 1;
  return last >= 1 && word[last] === word[last - 1] && isConsonant(word, last);
}

/** Whether the word ends in consonant, vowel, consonant, where the last is not w, x or y. */
function endsInShortSyllable(word: string): boolean {
  const last = word.length - 1;
  if (last < 2 || !isConsonant(word, last) || isConsonant(word, last - 1) || !isConsonant(word, last - 2)) return false;
  return !'wxy'.includes(word[last]!);
}

function removePlural(word: string): string {
  if (word.endsWith('sses') || word.endsWith('ies')) return word.slice(0, -2);
  if (word.endsWith('s') && !word.endsWith('ss')) return word.slice(0, -1);
  return word;
}

function removePastAndProgressive(word: string): string {
  if (word.endsWith('eed')) return measure(word.slice(0, -3)) > 0 ? word.slice(0, -1) : word;
  const suffix = word.endsWith('ed') ? 'ed' : word.endsWith('ing') ? 'ing' : '';
  const stem = word.slice(0, word.length - suffix.length);
  if (suffix === '' || !hasVowel(stem)) return word;
  if (/(?:at|bl|iz)$/.test(stem)) return `${stem}e`;
  if (endsInDoubleConsonant(stem)) return /[lsz]$/.test(stem) ? stem : stem.slice(0, -1);
  return measure(stem) === 1 && endsInShortSyllable(stem) ? `${stem}e` : stem;
}

function replaceFinalY(word: string): string {
  return word.endsWith('y') && hasVowel(word.slice(0, -1)) ? `${word.slice(0, -1)}i` : word;
}

function replaceSuffix(word: string, suffixes: Suffixes, allows: (before: string, suffix: string) => boolean): string {
  const found = suffixes.find(([suffix]) => word.endsWith(suffix));
  if (found === undefined) return word;
  const before = word.slice(0, word.length - found[0].length);
  return allows(before, found[0]) ? before + found[1] : word;
}

function removeFinalEAndL(word: string): string {
  let stem = word;
  if (stem.endsWith('e')) {
    const before = stem.slice(0, -1);
    const m = measure(before);
    if (m > 1 || (m === 1 && !endsInShortSyllable(before))) stem = before;
  }
  return stem.endsWith('ll') && measure(stem.slice(0, -1)) > 1 ? stem.slice(0, -1) : stem;
}
