import { readFileSync } from 'node:fs';
import { rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { fixture } from '../../encoder/model-fixtures.ts';
import { HIDDEN, type TinyCheckpoint, type TinyOptions, tinyCheckpoint } from './tiny-checkpoint.ts';
import { TINY_QWEN3 } from './tiny-families.ts';

/** They follow the vocabulary's 1,500 tokens; the added tokens come after them, because Rust's tokenizers count these from its size. */
export const ANSWERS = { yes: 1500, no: 1501 };
export const ROWS = 1507;

/** tokenizer.json of Qwen3 with a small vocabulary that has the answers of a reranker. */
export function rerankerTokenizer(answers: Readonly<Record<string, number>> = ANSWERS): string {
  const file = JSON.parse(gunzipSync(readFileSync(fixture('qwen3-tokenizer.json.gz'))).toString()) as {
    model: { vocab: Record<string, number> };
    added_tokens: { id: number }[];
    post_processor: unknown;
  };
  Object.assign(file.model.vocab, answers);
  for (const token of file.added_tokens) token.id += Object.keys(answers).length;
  file.post_processor = null;
  return JSON.stringify(file);
}

/** A Qwen3 decoder in a folder of that name, with the files that Qwen3-Reranker has. */
export async function tinyReranker(
  t: TestContext,
  {
    name = 'Qwen3-Reranker-0.6B',
    tokenizer = rerankerTokenizer(),
    ...options
  }: TinyOptions & { name?: string; tokenizer?: string } = {},
): Promise<TinyCheckpoint> {
  const checkpoint = await tinyCheckpoint(t, {
    family: TINY_QWEN3,
    ...options,
    tensors: { 'embed_tokens.weight': [ROWS, HIDDEN], ...options.tensors },
    config: { vocab_size: ROWS, ...options.config },
  });
  await rm(join(checkpoint.folder, '1_Pooling'), { recursive: true });
  await writeFile(join(checkpoint.folder, 'tokenizer.json'), tokenizer);
  await writeFile(join(checkpoint.folder, 'tokenizer_config.json'), JSON.stringify({ model_max_length: 131_072 }));
  const folder = join(dirname(checkpoint.folder), name);
  await rename(checkpoint.folder, folder);
  return { ...checkpoint, folder };
}
