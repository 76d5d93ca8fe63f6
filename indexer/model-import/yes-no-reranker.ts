import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { invalidModel, type JsonObject, readJsonFile } from '../../src/encoder/model/json-file.ts';
import type { AnswerIds } from './encoder-family.ts';
import type { ImportSource } from './import-source.ts';
import { classesOf } from './model-kind.ts';

/** Qwen3-Reranker's chat, from its model card: the instruction of a web search, and an empty chain of thought before the answer. */
const QWEN3_TEMPLATE =
  '<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. Note that the ' +
  'answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n' +
  '<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n<Query>: {query}\n<Document>: {passage}' +
  '<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n';

/**
 * The chat that a reranker reads, whose score is the probability of the token yes against no after it. Recognises Qwen3-Reranker and its
 * conversions by the names and the class of the model; undefined for another model, and for an encoder.
 */
export function yesNoTemplate({ folder, names, config }: ImportSource): string | undefined {
  const isReranker =
    config.model_type === 'qwen3' &&
    names.some((name) => /qwen3[-_]?rerank/i.test(name)) &&
    classesOf(config).some((name) => /^Qwen3For(CausalLM|SequenceClassification)$/.test(name));
  const isEncoder = ['modules.json', '1_Pooling'].some((file) => existsSync(join(folder, file)));
  return isReranker && !isEncoder ? QWEN3_TEMPLATE : undefined;
}

/** The ids of the tokens `yes` and `no`. Throws MODEL_INVALID if tokenizer.json lacks one. */
export async function answerIds(folder: string): Promise<AnswerIds> {
  const path = join(folder, 'tokenizer.json');
  const { model } = (await readJsonFile(path)) as { readonly model?: { readonly vocab?: JsonObject } };
  const tokenId = (token: string): number => {
    const id = Object.hasOwn(model?.vocab ?? {}, token) ? model!.vocab![token] : undefined;
    if (typeof id === 'number') return id;
    throw invalidModel(
      `${path} has no token "${token}", whose logit is the score of a reranker like Qwen3-Reranker. Fetch the model's own tokenizer.json.`,
    );
  };
  return { yes: tokenId('yes'), no: tokenId('no') };
}
