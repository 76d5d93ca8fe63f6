import { workerData } from 'node:worker_threads';
import { answerCalls } from '../../base/system/thread-calls.ts';
import { TextTokenizer } from '../tokenizer/tokenizer.ts';
import { cutTokens } from './cut-tokens.ts';
import type { CutRequest } from './token-cutter.ts';

/** A worker thread that cuts texts by the tokens of one tokenizer. */
answerCalls(async () => {
  const tokenizer = await TextTokenizer.load(workerData as string);
  return ({ texts, tokens }: CutRequest) => texts.map((text) => cutTokens(text, tokens, tokenizer));
});
