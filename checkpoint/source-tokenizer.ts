import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type JsonObject, readJsonFile } from '../src/embedding/json-file.ts';
import { TextTokenizer } from '../src/embedding/tokenizer.ts';
import { TrawlError } from '../src/errors.ts';

/**
 * The content of a checkpoint's tokenizer.json, checked: the library can use it, and no id of it lies beyond the rows of
 * the embedding table (`vocabularySize`; null where that is not known). MODEL_INVALID.
 */
export async function readSourceTokenizer(folder: string, vocabularySize: number | null): Promise<JsonObject> {
  const path = join(folder, 'tokenizer.json');
  if (!existsSync(path)) {
    throw new TrawlError(
      'MODEL_INVALID',
      `${path} is missing. Make it of the model's slow tokenizer with Python: ` +
        'AutoTokenizer.from_pretrained(folder).save_pretrained(folder) writes it.',
    );
  }
  const file = await readJsonFile(path);
  new TextTokenizer(file, path);
  if (vocabularySize !== null) checkIds(path, file, vocabularySize);
  return file;
}

function checkIds(path: string, file: JsonObject, vocabularySize: number): void {
  const largest = largestId(file);
  if (largest < vocabularySize) return;
  throw new TrawlError(
    'MODEL_INVALID',
    `${path} has the token id ${largest}; the model has embeddings for ${vocabularySize} tokens (ids 0 to ` +
      `${vocabularySize - 1}). Tokenizer and weights must come from the same checkpoint; after tokens were added, the ` +
      'embeddings must be resized before saving.',
    { details: { largestId: largest, vocabularySize } },
  );
}

/** The vocabulary is a map (WordPiece, BPE) or a list of [piece, score] (Unigram). */
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
