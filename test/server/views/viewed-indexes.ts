import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, type TestContext } from 'node:test';
import type { FastifyInstance, InjectOptions } from 'fastify';
import { loadKernel } from '../../../src/engine/native/kernel.ts';
import type { ViewDefinition } from '../../../src/index/views/view-definition.ts';
import { AnswerCache } from '../../../src/search/layers/answer-cache.ts';
import { openRetriever } from '../../../src/search/opening/open-retriever.ts';
import { AccessKeys } from '../../../src/server/access/access-keys.ts';
import { IndexRegistry } from '../../../src/server/indexes/index-registry.ts';
import { IndexSlot } from '../../../src/server/indexes/index-slot.ts';
import type { ServerConfig } from '../../../src/server/server-config.ts';
import { Perturbation } from '../../../training/perturbation/perturbation.ts';
import { perturbationSettings } from '../../../training/perturbation/settings.ts';
import { fileFolder, runTrawl } from '../../cli/run-trawl.ts';
import { FakeReranker } from '../../helpers/fake-reranker.ts';
import { keptEncoders } from '../../helpers/kept-encoders.ts';

const loaded = loadKernel();
export const skip = loaded.ok ? false : `the native engine is not built: ${loaded.reason}`;
const folder = await fileFolder();
const encoderPools = keptEncoders();

/** Passages with odd numbers are blocked in the view. Each document has a passage that is blocked and one that is not. */
export const PASSAGES = 24;
export const SECRET = 'classified';

const rowsOf = (index: string): readonly object[] =>
  Array.from({ length: PASSAGES }, (_, i) => ({
    id: `${index}-${i}`,
    doc_id: `${index}-doc-${Math.floor(i / 2)}`,
    title: `Page ${Math.floor(i / 2)}`,
    url: `https://example.org/${index}/${Math.floor(i / 2)}`,
    text: `The river and the bridge of ${index}, number ${i}, are ${i % 2 === 0 ? 'public' : SECRET} here.`,
    source: i % 3 === 0 ? 'news' : 'wiki',
    open: i % 2 === 0,
  }));

export const INDEXES = ['wiki', 'news'] as const;

export const blocked = (index: string): string[] =>
  Array.from({ length: PASSAGES / 2 }, (_, i) => `${index}-${2 * i + 1}`);

export const VIEWS: readonly ViewDefinition[] = [
  { name: 'train', blockIds: [join(folder, 'blocked.txt')] },
  { name: 'news-only', filter: { column: 'source', op: '=', value: 'news' } },
];

before(async () => {
  if (!loaded.ok) return;
  writeFileSync(join(folder, 'blocked.txt'), `${INDEXES.flatMap(blocked).join('\n')}\n`);
  for (const name of INDEXES) {
    const corpus = join(folder, `${name}.jsonl`);
    writeFileSync(
      corpus,
      rowsOf(name)
        .map((row) => `${JSON.stringify(row)}\n`)
        .join(''),
    );
    const options = [
      '--model',
      'token-average-256',
      '--bm25',
      '--column',
      'source:string',
      '--column',
      'open:boolean',
      '--quiet',
    ];
    const { code, stderr } = await runTrawl(['index', corpus, '--out', join(folder, name), ...options]);
    assert.equal(code, 0, stderr);
  }
});

/** Both indexes with both views, a cache, a reranker and a group. */
export async function bothIndexes(t: TestContext, views: readonly ViewDefinition[] = VIEWS): Promise<IndexRegistry> {
  const answerCache = new AnswerCache(1e8);
  const reranker = new FakeReranker();
  const holder = new IndexRegistry(
    INDEXES.map(
      (name) =>
        new IndexSlot(name, { folder: join(folder, name) }, (_, target) =>
          openRetriever(target.folder, { name, views, answerCache, reranker, encoderPools }),
        ),
    ),
    new Map([['all', INDEXES]]),
  );
  t.after(() => holder.close());
  await holder.open();
  return holder;
}

export const KEY = 'a-key-of-sixteen-or-more';
export const ADMIN = 'an-admin-key-of-sixteen-or-more';

export interface Binding {
  readonly config: Partial<ServerConfig>;
  readonly prefix: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Mixes passages into every answer that the search did not find. */
export const DISTRACTORS = {
  searchHook: new Perturbation(perturbationSettings({ distractors: 1 }, { distractors: 12 })),
};

/** The ways in which a request is limited to a view. */
export const BINDINGS: Readonly<Record<string, Binding>> = {
  'address with distractors': { config: { views: ['train'], ...DISTRACTORS }, prefix: '', headers: {} },
  address: { config: { views: ['train'] }, prefix: '', headers: {} },
  path: { config: {}, prefix: '/views/train', headers: {} },
  key: {
    config: { keys: AccessKeys.parse(`read:${KEY} view=train\nadmin:${ADMIN}`, 'keys') },
    prefix: '',
    headers: { authorization: `Bearer ${KEY}` },
  },
};

export const Q = 'the river and the bridge';

export function inject(app: FastifyInstance, binding: Binding, options: InjectOptions) {
  const url = `${binding.prefix}${String(options.url)}`;
  return app.inject({ ...options, url, headers: { ...binding.headers, ...options.headers } });
}
