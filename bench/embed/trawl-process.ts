import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { packageVersion } from '../../src/base/package-root.ts';
import type { Precision } from '../../src/encoder/identity/model-identity.ts';
import { openEncoder } from '../../src/encoder/open-encoder.ts';
import type { TextEncoder } from '../../src/encoder/text-encoder.ts';
import { peakBytes, resetPeak, residentBytes } from './process-memory.ts';

/**
 * Runs Trawl's encoder in its own process, so that its memory is measured like a baseline's. It answers the requests that
 * bench/baselines/embed_sentence_transformers.py defines, on stdin and stdout, and exits at the end of stdin.
 */

interface Request {
  readonly do: string;
  readonly model: string;
  readonly precision: Precision;
  readonly texts: string;
  readonly first: number;
  readonly count: number;
}

const threads = Number(process.argv[2]);
let encoder: TextEncoder | undefined;
let passages: readonly string[] = [];
let queries: readonly string[] = [];
let bytesBefore = 0;

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line) as Request;
  let reply: object;
  try {
    reply = await answer(request);
  } catch (error) {
    reply = { error: error instanceof Error ? error.message : String(error) };
  }
  process.stdout.write(`${JSON.stringify(reply)}\n`);
}
await encoder?.close();

async function answer(request: Request): Promise<object> {
  if (request.do === 'load') return load(request);
  if (request.do === 'memory') {
    const used = { residentBytes: Math.max(0, peakBytes() - bytesBefore) };
    resetPeak();
    return used;
  }
  if (encoder === undefined) throw new Error('No model is loaded.');
  const { first = 0, count } = request;
  switch (request.do) {
    case 'encode':
      return encode(encoder, passages.slice(first, first + count));
    case 'query': {
      const times: number[] = [];
      for (const query of queries.slice(first, first + count)) {
        const started = performance.now();
        await encoder.encode([query], { inputType: 'query' });
        times.push(performance.now() - started);
      }
      return { times };
    }
    case 'vectors':
      return { values: [...(await encoder.encode(passages.slice(0, count), { inputType: 'passage' })).vectors] };
    default:
      throw new Error(`Unknown request ${request.do}.`);
  }
}

async function load({ model, precision, texts }: Request): Promise<object> {
  ({ passages, queries } = JSON.parse(readFileSync(texts, 'utf8')) as {
    passages: readonly string[];
    queries: readonly string[];
  });
  bytesBefore = residentBytes();
  encoder = await openEncoder(model, { precision, workers: threads });
  resetPeak();
  return { version: `trawl ${packageVersion}` };
}

async function encode(of: TextEncoder, texts: readonly string[]): Promise<object> {
  const started = performance.now();
  const { outcomes } = await of.encode(texts, { inputType: 'passage' });
  const ms = performance.now() - started;
  let tokens = 0;
  let squaredTokens = 0;
  for (const outcome of outcomes) {
    if (!outcome.ok) throw outcome.error;
    const own = outcome.tokens ?? 0;
    tokens += own;
    squaredTokens += own ** 2;
  }
  return { ms, tokens, squaredTokens };
}
