import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { type JsonObject, readJsonFile } from '../../src/encoder/model/json-file.ts';
import type { AnswerIds } from './encoder-family.ts';

/**
 * What Qwen3-Reranker was trained with, as its model card and the examples of vLLM have it: the instruction of a web search, and an
 * empty chain of thought before the answer.
 */
const QWEN3_TEMPLATE =
  '<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. Note that the ' +
  'answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n' +
  '<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n<Query>: {query}\n<Document>: {passage}' +
  '<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n';

/** A reranker whose score is the probability of the token yes against no after a chat. */
interface YesNoReranker {
  readonly pairTemplate: string;
}

/** Recognises Qwen3-Reranker and its conversions by the names and the class of the model; null for another model, and for an encoder. */
export function yesNoReranker(folder: string, names: readonly string[], raw: JsonObject): YesNoReranker | null {
  const named = [...names, basename(folder)].some((name) => /qwen3[-_]?rerank/i.test(name));
  const { model_type: modelType, architectures } = raw;
  const scores =
    Array.isArray(architectures) &&
    architectures.some((name) => /^Qwen3For(CausalLM|SequenceClassification)$/.test(String(name)));
  const isEncoder = ['modules.json', '1_Pooling'].some((file) => existsSync(join(folder, file)));
  return named && modelType === 'qwen3' && scores && !isEncoder ? { pairTemplate: QWEN3_TEMPLATE } : null;
}

/** The ids of the tokens `yes` and `no`. Throws MODEL_INVALID if tokenizer.json lacks one. */
export async function answerIds(folder: string): Promise<AnswerIds> {
  const path = join(folder, 'tokenizer.json');
  const file = await readJsonFile(path);
  const vocabulary = ((file.model as JsonObject | undefined)?.vocab ?? {}) as Readonly<Record<string, unknown>>;
  const idOf = (token: string): number => {
    const id = Object.hasOwn(vocabulary, token) ? vocabulary[token] : undefined;
    if (typeof id === 'number') return id;
    throw new TrawlError(
      'MODEL_INVALID',
      `${path} has no token "${token}", whose logit is the score of a reranker like Qwen3-Reranker. Fetch the model's own tokenizer.json.`,
    );
  };
  return { yes: idOf('yes'), no: idOf('no') };
}
