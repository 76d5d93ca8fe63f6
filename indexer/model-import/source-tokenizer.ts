import { existsSync } from 'node:fs';
import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { invalidModel, type JsonObject, readJsonFile } from '../../src/encoder/model/json-file.ts';
import { withTokenizerSettings } from '../../src/encoder/model/sentence-settings.ts';
import { TextTokenizer } from '../../src/encoder/tokenizer/tokenizer.ts';
import { tokenizerOfVocabulary } from './bert-vocabulary.ts';

export type WriteTokenizer = (path: string) => Promise<void>;

/**
 * Reads a checkpoint's tokenizer.json, or converts its vocab.txt. Throws MODEL_INVALID if the tokenizer is not supported, or
 * if a token id is not less than `vocabularySize`, the number of rows of the embedding table (undefined: unknown).
 *
 * `endToken` is put after every text if it is in the vocabulary and tokenizer.json puts nothing there, as in the first revisions of
 * Qwen3-Embedding.
 */
export async function readSourceTokenizer(
  folder: string,
  vocabularySize: number | undefined,
  endToken?: string,
): Promise<WriteTokenizer> {
  const path = join(folder, 'tokenizer.json');
  if (existsSync(path)) {
    const own: TokenizerJson = await readJsonFile(path);
    const file: TokenizerJson = await withTokenizerSettings(folder, own);
    const { trailingIds } = check(path, file, vocabularySize);
    const ended = endToken === undefined || trailingIds.length > 0 ? file : (withEndToken(file, endToken) ?? file);
    return (target) => (ended === own ? copyFile(path, target) : writeFile(target, JSON.stringify(ended)));
  }
  const vocabulary = join(folder, 'vocab.txt');
  if (existsSync(vocabulary)) {
    const file = await withTokenizerSettings(folder, await tokenizerOfVocabulary(folder));
    check(vocabulary, file, vocabularySize);
    return (target) => writeFile(target, JSON.stringify(file));
  }
  throw invalidModel(
    `${path} is missing. Make it from the model's slow tokenizer with Python: ` +
      'AutoTokenizer.from_pretrained(folder).save_pretrained(folder).',
  );
}

/** The fields of a tokenizer.json that are read. The vocabulary maps tokens to ids (WordPiece, BPE), or is a list by id (Unigram). */
interface TokenizerJson extends JsonObject {
  readonly model?: { readonly vocab?: readonly unknown[] | JsonObject } | null;
  readonly added_tokens?: readonly { readonly id?: number; readonly content?: string }[];
}

function check(path: string, file: TokenizerJson, vocabularySize: number | undefined): TextTokenizer {
  const tokenizer = new TextTokenizer(file, path);
  const largest = largestId(file);
  if (vocabularySize === undefined || largest < vocabularySize) return tokenizer;
  throw invalidModel(
    `${path} has the token id ${largest}, but the model has embeddings for ${vocabularySize} tokens (ids 0 to ` +
      `${vocabularySize - 1}). Tokenizer and weights must come from the same checkpoint. If tokens were added, resize the ` +
      'embeddings before saving.',
    { details: { largestId: largest, vocabularySize } },
  );
}

/** The file with a post-processor that puts a token after every text; undefined if the token is not one of the added tokens. */
function withEndToken(file: TokenizerJson, token: string): JsonObject | undefined {
  const id = file.added_tokens?.find(({ content }) => content === token)?.id;
  if (id === undefined) return undefined;
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

function largestId({ model, added_tokens: added = [] }: TokenizerJson): number {
  const vocab = model?.vocab ?? {};
  let largest = Array.isArray(vocab) ? vocab.length - 1 : -1;
  const ids = Array.isArray(vocab) ? [] : Object.values(vocab);
  for (const id of [...ids, ...added.map((token) => token.id)]) {
    if (typeof id === 'number' && id > largest) largest = id;
  }
  return largest;
}
