import { jsonExcerpt } from '../../base/objects.ts';
import { invalidModel } from '../model/json-file.ts';
import { bytePairEncoder } from './byte-pairs.ts';
import { type AddedToken, MOST_IDS, type ModelPart, unsupported } from './tokenizer-file.ts';
import { unigramEncoder } from './unigram-pieces.ts';
import { wordEncoder, wordPieceEncoder } from './word-pieces.ts';

/** Turns a word into ids of the vocabulary. */
export type WordEncoder = (word: string) => readonly number[];

/**
 * Opens the model of a tokenizer.json. Throws MODEL_INVALID for a model whose ids could differ from the reference's, for a vocabulary
 * whose ids are not whole numbers, and for an added token that has another id in the reference.
 */
export function openModel(part: ModelPart, addedTokens: readonly AddedToken[]): WordEncoder {
  const type = part.type ?? typeByFields(part);
  if (Array.isArray(part.vocab) !== (type === 'Unigram')) throw unsupported('model', part, ' with such a vocabulary');
  const vocabulary = vocabularyOf(part);
  checkAddedTokens(addedTokens, vocabulary, Array.isArray(part.vocab) ? part.vocab.length : vocabulary.size);
  switch (type) {
    case 'WordPiece':
      return wordPieceEncoder(part, vocabulary);
    case 'WordLevel':
      return wordEncoder(part, vocabulary);
    case 'BPE':
      return bytePairEncoder(part, vocabulary);
    case 'Unigram':
      return unigramEncoder(part);
    default:
      throw unsupported('model', part);
  }
}

function typeByFields(part: ModelPart): string | undefined {
  if (Array.isArray(part.vocab)) return 'Unigram';
  if (part.merges !== undefined) return 'BPE';
  return part.continuing_subword_prefix === undefined ? undefined : 'WordPiece';
}

function vocabularyOf(part: ModelPart): Map<string, number> {
  const vocab = part.vocab ?? {};
  if (Array.isArray(vocab)) {
    const wrong = vocab.find((entry) => typeof entry?.[0] !== 'string' || typeof entry[1] !== 'number');
    if (wrong !== undefined)
      throw invalidModel(`its vocabulary has ${jsonExcerpt(wrong)} in place of a piece and its score`);
    return new Map(vocab.map(([piece]: readonly [string, number], id) => [piece, id]));
  }
  const vocabulary = new Map<string, number>(Object.entries(vocab));
  for (const [token, id] of vocabulary) {
    if (Number.isInteger(id) && id >= 0 && id < MOST_IDS) continue;
    throw invalidModel(
      `its token ${JSON.stringify(token)} has the id ${JSON.stringify(id)}, which is not a whole number below ${MOST_IDS}`,
    );
  }
  if (vocabulary.size === 0) throw invalidModel('its model has no vocabulary');
  return vocabulary;
}

/** The reference gives an added token the id of the vocabulary, or else the next one, whatever the file says. */
function checkAddedTokens(tokens: readonly AddedToken[], vocabulary: ReadonlyMap<string, number>, size: number): void {
  const ids = new Map<string, number>();
  let next = size;
  for (const { content, id } of tokens) {
    const expected = vocabulary.get(content) ?? ids.get(content) ?? next;
    if (id !== expected) {
      throw invalidModel(
        `its added token ${JSON.stringify(content)} has the id ${JSON.stringify(id)}, but the reference would give it ${expected}`,
      );
    }
    ids.set(content, id);
    next = Math.max(next, id + 1);
  }
}
