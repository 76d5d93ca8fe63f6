import { invalidModel } from '../model/json-file.ts';
import { type ModelPart, unsupported } from './tokenizer-file.ts';

/** Words and pieces that are both longer would take endless time. */
const LONGEST_PIECE = 128;

/** Splits a word greedily into the longest pieces of the vocabulary; a word that cannot be split, or is too long, is unknown. */
export function wordPieceEncoder(part: ModelPart, vocabulary: ReadonlyMap<string, number>): (word: string) => number[] {
  const prefix = part.continuing_subword_prefix ?? '##';
  const maxCharacters = part.max_input_chars_per_word ?? 100;
  const unknown = unknownId(part, vocabulary);
  let longest = 0;
  for (const piece of vocabulary.keys()) longest = Math.max(longest, piece.length);
  if (Math.min(longest, maxCharacters) > LONGEST_PIECE) {
    throw unsupported(
      'model',
      part,
      ` with a token of ${longest} characters and max_input_chars_per_word ${maxCharacters}`,
    );
  }

  return (word) => {
    // A character has at most two code units.
    if (word.length > 2 * maxCharacters) return [unknown];
    // Start of each character, and the end of the word: a piece never splits a character.
    const offsets = [0];
    for (const character of word) offsets.push(offsets.at(-1)! + character.length);
    if (offsets.length - 1 > maxCharacters) return [unknown];
    const ids: number[] = [];
    for (let start = 0; start < offsets.length - 1; ) {
      let end = Math.min(offsets.length - 1, start + longest);
      let id: number | undefined;
      for (; end > start; end--) {
        const piece = word.slice(offsets[start], offsets[end]);
        id = vocabulary.get(start === 0 ? piece : prefix + piece);
        if (id !== undefined) break;
      }
      if (id === undefined) return [unknown];
      ids.push(id);
      start = end;
    }
    return ids;
  };
}

/** A vocabulary of whole words. */
export function wordEncoder(part: ModelPart, vocabulary: ReadonlyMap<string, number>): (word: string) => number[] {
  const unknown = unknownId(part, vocabulary);
  return (word) => [vocabulary.get(word) ?? unknown];
}

function unknownId({ unk_token: token = '[UNK]' }: ModelPart, vocabulary: ReadonlyMap<string, number>): number {
  const id = token === null ? undefined : vocabulary.get(token);
  if (id === undefined) throw invalidModel(`its unk_token ${JSON.stringify(token)} is not in its vocabulary`);
  return id;
}
