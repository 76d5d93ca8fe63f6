import { parentPort, workerData } from 'node:worker_threads';
import { bug, serializeError } from '../../base/errors.ts';
import { TextTokenizer } from '../tokenizer/tokenizer.ts';
import type { CutWorkerSetup, FromCutWorker, ToCutWorker } from './cut-messages.ts';
import { cutTokens } from './cut-tokens.ts';

/** A worker thread that cuts texts by the tokens of one tokenizer. A tokenizer that cannot be loaded fails every message. */
if (parentPort === null) throw bug('The worker that cuts texts was started outside a worker thread');
const port = parentPort;
const tokenizer = TextTokenizer.load((workerData as CutWorkerSetup).tokenizerPath);
// The error is the answer to each message; before the first one it must not be unhandled.
tokenizer.catch(() => undefined);

port.on('message', async ({ id, texts, tokens }: ToCutWorker) => {
  let reply: FromCutWorker;
  try {
    const loaded = await tokenizer;
    reply = { id, cuts: texts.map((text) => cutTokens(text, tokens, loaded)) };
  } catch (error) {
    reply = { id, error: serializeError(error) };
  }
  port.postMessage(reply);
});
