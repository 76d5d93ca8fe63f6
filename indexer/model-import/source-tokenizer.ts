import { existsSync } from 'node:fs';
import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { type JsonObject, readJsonFile } from '../../src/encoder/model/json-file.ts';
import { TextTokenizer } from '../../src/encoder/tokenizer/tokenizer.ts';
import { tokenizerOfVocabulary } from './bert-vocabulary.ts';

/** Writes tokenizer.json to a path. */
export type WriteTokenizer = (path: string) => Promise<void>;

/**
 * Reads a checkpoint's tokenizer.json, or converts its vocab.txt. Throws MODEL_INVALID if the tokenizer is not supported, or
 * if a token id is not less than `vocabularySize`, the number of rows of the embedding table (null: unknown).
 *
 * `endToken` is put after every text if it is in the vocabulary and tokenizer.json puts nothing there, as in the first revisions of
 * Qwen3-Embedding.
 */
export async function readSourceTokenizer(
  folder: string,
  vocabularySize: number | null,
  endToken: string | null = null,
): Promise<WriteTokenizer> {
  const path = join(folder, 'tokenizer.json');
  if (existsSync(path)) {
    const file = await readJsonFile(path);
    const { trailingIds } = check(path, file, vocabularySize);
    const ended = endToken === null || trailingIds.length > 0 ? null : withEndToken(file, endToken);
    return (target) => (ended === null ? copyFile(path, target) : writeFile(target, JSON.stringify(ended)));
  }
  const vocabulary = join(folder, 'vocab.txt');
  if (existsSync(vocabulary)) {
    const file = await tokenizerOfVocabulary(folder);
    check(vocabulary, file, vocabularySize);
    return (target) => writeFile(target, JSON.stringify(file));
  }
  throw new TrawlError(
    'MODEL_INVALID',
    `${path} is missing. Make it from the model's slow tokenizer with Python: ` +
      'AutoTokenizer.from_pretrained(folder).save_pretrained(folder).',
  );
}

function check(path: string, file: JsonObject, vocabularySize: number | null): TextTokenizer {
  const tokenizer = new TextTokenizer(file, path);
  const largest = largestId(file);
  if (vocabularySize === null || largest < vocabularySize) return tokenizer;
  throw new TrawlError(
    'MODEL_INVALID',
    `${path} has the token id ${largest}, but the model has embeddings for ${vocabularySize} tokens (ids 0 to ` +
      `${vocabularySize - 1}). Tokenizer and weights must come from the same checkpoint. If tokens were added, resize the ` +
      'embeddings before saving.',
    { details: { largestId: largest, vocabularySize } },
  );
}

/** The file with a post-processor that puts a token after every text; null if the token is not one of the added tokens. */
function withEndToken(file: JsonObject, token: string): JsonObject | null {
  const added = (Array.isArray(file.added_tokens) ? file.added_tokens : []) as readonly AddedToken[];
  const id = added.find(({ content }) => content === token)?.id;
  if (id === undefined) return null;
  const end = { SpecialToken: { id: token, type_id: 0 } };
  const text = (name: string) => ({ Sequence: { id: name, type_id: 0 } });
  const template = {
    type: 'TemplateProcessing',
    single: [text('A'), end],
    pair: [text('A'), end, text('B'), end],
    special_tokens: { [token]: { id: token, ids: [id], tokens: [token] } },
  };
  const own = file.post_processor ?? null;
  return { ...file, post_processor: own === null ? template : { type: 'Sequence', processors: [own, template] } };
}

interface AddedToken {
  readonly id?: number;
  readonly content?: string;
}

/** The vocabulary maps tokens to ids (WordPiece, BPE), or is a list of [token, score] by id (Unigram). */
function largestId(file: JsonObject): number {
  const { vocab } = (file.model ?? {}) as { readonly vocab?: unknown };
  const added = (Array.isArray(file.added_tokens) ? file.added_tokens : []) as readonly { readonly id?: unknown }[];
  let largest = Array.isArray(vocab) ? vocab.length - 1 : -1;
  const ids = Array.isArray(vocab) ? [] : Object.values((vocab ?? {}) as Readonly<Record<string, unknown>>);
  for (const id of [...ids, ...added.map((token) => token.id)]) {
    if (typeof id === 'number' && id > largest) largest = id;
  }
  return largest;
}
