import { buildApp } from '../src/http/app.ts';
import { listen } from '../src/http/listen.ts';
import { SqlitePassageStore } from '../src/passages/sqlite-passage-store.ts';
import { openIndexDirectory } from '../src/retrieval/index-directory.ts';
import { SearchRetriever } from '../src/retrieval/search-retriever.ts';
import { openEngine } from '../src/vector-index/open-engine.ts';
import { IdleEncoder } from './idle-encoder.ts';

/**
 * `node idle-server.js INDEX`: what open-retriever.ts puts together and `trawl serve` serves, with an encoder that costs
 * nothing. Ready when it has written {"url": …}.
 */
const { manifest, source, passages } = openIndexDirectory(process.argv[2]!);
const { rows, dimension, metric, generation, model } = manifest;
const retriever = new SearchRetriever(
  { index: 'free', rows, dimension, metric, generation, model },
  new IdleEncoder(dimension),
  await openEngine(source),
  await SqlitePassageStore.open(passages),
);
const url = await listen(buildApp(retriever), { host: '127.0.0.1', port: 0 });
process.stdout.write(`${JSON.stringify({ url })}\n`);
