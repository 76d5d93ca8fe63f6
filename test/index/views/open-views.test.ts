import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, type TestContext, test } from 'node:test';
import { readIndexManifest } from '../../../src/index/manifest/read-manifest.ts';
import type { ViewDefinition } from '../../../src/index/views/view-definition.ts';
import { openRetriever } from '../../../src/search/opening/open-retriever.ts';
import type { OpenRetriever } from '../../../src/search/retriever.ts';
import { fileFolder, runTrawl } from '../../cli/run-trawl.ts';
import { keptEncoders } from '../../helpers/kept-encoders.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

const ROWS = [
  { id: 'a', title: 'Danube', text: 'A river.', date: '2020-01-01', size: 1 },
  { id: 'b', title: '"Vienna"', text: 'A city.', date: ['2020-01-01', '2030-01-01'], size: 2 },
  { id: 'c', title: 'Rhine', text: 'Another river.', size: 3 },
  { id: 7, title: 'Danube', text: 'Its length.', date: '2023-10-01', size: 4 },
];

const encoderPools = keptEncoders();
const folder = await fileFolder();
const out = join(folder, 'ix');
before(async () => {
  const corpus = join(folder, 'c.jsonl');
  writeFileSync(corpus, ROWS.map((row) => `${JSON.stringify(row)}\n`).join(''));
  const columns = ['--column', 'date:date', '--column', 'size:number'];
  const { code, stderr } = await runTrawl([
    'index',
    corpus,
    '--out',
    out,
    '--model',
    'token-average-256',
    ...columns,
    '--quiet',
  ]);
  assert.equal(code, 0, stderr);
});

async function idsIn(t: TestContext, retriever: OpenRetriever, view: string): Promise<string[]> {
  t.after(() => retriever.close());
  const { outcomes } = await retriever.retrieve({ queries: ['river'], k: 10, views: [view] });
  assert.ok(outcomes[0]!.ok);
  return outcomes[0]!.hits.map(({ document }) => String((JSON.parse(document) as { id: unknown }).id)).sort();
}

/** A file with these lines. */
async function list(t: TestContext, text: string): Promise<string> {
  const path = join(await tempFolder(t), 'list.txt');
  writeFileSync(path, text);
  return path;
}

test('a date bound leaves out every passage with a later date, and follows its rule for passages without one', async (t) => {
  const bound = { column: 'date', before: '2023-10-01' };
  const retriever = await openRetriever(out, {
    encoderPools,
    views: [
      { name: 'keep', date: { ...bound, undated: 'keep' } },
      { name: 'drop', date: { ...bound, undated: 'drop' } },
    ],
  });
  assert.deepEqual(await idsIn(t, retriever, 'keep'), ['a', 'c']);
  assert.deepEqual(await idsIn(t, retriever, 'drop'), ['a']);
});

test('block lists match ids of both types and titles with and without quotes, and report what matches nothing', async (t) => {
  const warnings: string[] = [];
  const ids = await list(t, '\uFEFFa\r\n\r\nnone\r\n7\n');
  const titles = await list(t, 'Vienna\nDanube\nMoldau\nMain');
  const retriever = await openRetriever(out, {
    encoderPools,
    name: 'ix',
    views: [
      { name: 'ids', blockIds: [ids] },
      { name: 'titles', blockTitles: [titles] },
    ],
    onWarning: (warning) => void warnings.push(warning),
  });
  assert.deepEqual(await idsIn(t, retriever, 'ids'), ['b', 'c']);
  assert.deepEqual(await idsIn(t, retriever, 'titles'), ['c']);
  assert.deepEqual(warnings, [
    `view ids: 1 of 3 ids of ${ids} match no passage of ix; the first is "none" in line 3`,
    `view titles: 2 of 4 titles of ${titles} match no passage of ix; the first is "Moldau" in line 3`,
  ]);
});

test('a block list hides a page however list and corpus write its title', async (t) => {
  const titles = [
    'Danube',
    '"Vienna"',
    'Ed_Wood_(film)',
    'A &amp; B',
    'Caf\u00e9 Central',
    '"In &amp; Out"',
    'Ed wood (film)',
  ];
  const corpus = await list(
    t,
    titles.map((title, id) => `${JSON.stringify({ id, contents: `${title}\nA river.` })}\n`).join(''),
  );
  const index = join(await tempFolder(t), 'ix');
  const built = await runTrawl(['index', corpus, '--format', 'jsonl', '--out', index, '--bm25', '--quiet']);
  assert.equal(built.code, 0, built.stderr);
  const listed = ['"Danube"', ' Vienna ', 'Ed Wood (film)', 'A & B', 'Cafe\u0301 Central', 'In_&_Out'];
  const blockTitles = [await list(t, listed.join('\n'))];
  const retriever = await openRetriever(index, { views: [{ name: 'train', blockTitles, unmatched: 'refuse' }] });
  t.after(() => retriever.close());
  const { outcomes } = await retriever.retrieve({ queries: ['river'], k: 10, views: ['train'], mode: 'bm25' });
  assert.ok(outcomes[0]!.ok);
  assert.deepEqual(
    outcomes[0]!.hits.map(({ row }) => row),
    [6],
  );
});

test('a block list that hides nothing is refused, and one with some entries that match nothing if the view says so', async (t) => {
  const none = await list(t, 'x\ny\n');
  const some = await list(t, 'x\na\n');
  const empty = await list(t, '\n\n');
  const open = (view: Omit<ViewDefinition, 'name'>, onWarning?: (warning: string) => void) =>
    openRetriever(out, { encoderPools, name: 'ix', views: [{ name: 'train', ...view }], onWarning });
  const refused: readonly (readonly [Omit<ViewDefinition, 'name'>, RegExp])[] = [
    [{ blockIds: [empty] }, /^View train: .* has no ids\. Correct the list/],
    [
      { blockIds: [some, none] },
      /^View train: 2 of 2 ids of .* match no passage of ix; the first is "x" in line 1\. Correct the list/,
    ],
    [{ blockTitles: [none] }, /^View train: 2 of 2 titles of /],
    [{ blockIds: [some], unmatched: 'refuse' }, /^View train: 1 of 2 ids of .* set "unmatched": "allow"\.$/],
  ];
  for (const [view, message] of refused) await assert.rejects(open(view), trawlError('CONFIG_INVALID', message));
  const warnings: string[] = [];
  const retriever = await open({ blockIds: [none], unmatched: 'allow' }, (warning) => void warnings.push(warning));
  assert.equal((await idsIn(t, retriever, 'train')).length, 4);
  assert.deepEqual(warnings, [
    `view train: 2 of 2 ids of ${none} match no passage of ix; the first is "x" in line 1`,
    'view train: it hides no passage of ix',
  ]);
});

test('an index that cannot have a view is not opened', async (t) => {
  const { generation } = readIndexManifest(out);
  const rows = await list(t, '0\n2\n');
  const views: readonly (readonly [Omit<ViewDefinition, 'name'>, Parameters<typeof trawlError>])[] = [
    [
      { filter: { column: 'sauce', op: 'exists' } },
      ['CONFIG_INVALID', /^View train: The filter names the column "sauce", but the index ix has date \(date\), size/],
    ],
    [
      { date: { column: 'size', before: '2023-10-01', undated: 'keep' } },
      ['CONFIG_INVALID', /^View train: The column "size" is a number/],
    ],
    [
      { rows, generation: 'another' },
      [
        'CONFIG_INVALID',
        /view train belong to generation another, but the index ix has generation .*List the rows again/,
      ],
    ],
    [
      { rows: await list(t, '0\n\n4\n'), generation },
      ['CORPUS_BAD_LINE', /list\.txt:3: found "4", expected the number of a row from 0 to 3/],
    ],
    [{ rows: await list(t, '-1\n'), generation }, ['CORPUS_BAD_LINE', /list\.txt:1: found "-1"/]],
    [{ blockIds: ['/no/such/list'] }, ['CORPUS_NOT_FOUND', /\/no\/such\/list/]],
  ];
  for (const [view, error] of views) {
    await assert.rejects(
      openRetriever(out, { encoderPools, name: 'ix', views: [{ name: 'train', ...view }] }),
      trawlError(...error),
    );
  }
  const retriever = await openRetriever(out, { encoderPools, views: [{ name: 'train', rows, generation }] });
  assert.deepEqual(await idsIn(t, retriever, 'train'), ['a', 'c']);
  const [{ sha256, ...info } = {}, ...others] = retriever.info.views;
  assert.deepEqual([info, others], [{ name: 'train', passages: 2 }, []]);
  assert.match(sha256 ?? '', /^[0-9a-f]{64}$/);
});
