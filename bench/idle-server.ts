import { buildApp } from '../src/http/app.ts';
import { listen } from '../src/http/listen.ts';
import { SqlitePassageStore } from '../src/passages/sqlite-passage-store.ts';
import { assembleRetriever } from '../src/retrieval/assemble-retriever.ts';
import { openIndexDirectory } from '../src/retrieval/index-directory.ts';
import { openEngine } from '../src/vector-index/open-engine.ts';
import { IdleEncoder } from './idle-encoder.ts';

/**
 * `node idle-server.js INDEX`: what `trawl serve` serves, without its log and with an encoder that costs nothing. Answers are
 * not shared: each query costs what it costs. Ready when it has written {"url": …}.
 */
const { manifest, source, passages } = openIndexDirectory(process.argv[2]!);
const { rows, dimension, metric, generation, model } = manifest;
const memory = { residentBytes: 0, touchedBytes: 0, mappedBytes: 0 };
const retriever = assembleRetriever(
  { index: 'free', rows, dimension, metric, generation, model, memory },
  {
    encoder: new IdleEncoder(dimension),
    index: await openEngine(source),
    passages: await SqlitePassageStore.open(passages),
    alive: source.alive,
  },
  { singleFlight: false },
);
const url = await listen(buildApp(retriever), { host: '127.0.0.1', port: 0 });
process.stdout.write(`${JSON.stringify({ url })}\n`);
