import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { IndexRegistry } from '../../../src/server/indexes/index-registry.ts';
import { FakeRetriever } from '../../helpers/fake-retriever.ts';
import { serve } from '../build.ts';
import { assertFits, open, PHONE, startBrowser, textOf, withoutBrowser } from './browser.ts';

const skip = withoutBrowser;
startBrowser();

/** Two indexes and their group `both`; each load opens the next generation. */
async function reloadedServer(t: TestContext): Promise<{ url: string; holder: IndexRegistry }> {
  let opened = 0;
  const indexes = ['wiki', 'news'].map((name) => ({ name, folder: name }));
  const open = async (name: string): Promise<FakeRetriever> =>
    new FakeRetriever({ index: name, generation: `generation-${++opened}` });
  const holder = IndexRegistry.opening(indexes, open, new Map([['both', ['wiki', 'news']]]));
  await holder.open();
  const { url } = await serve(t, holder);
  return { url, holder };
}

test('the index tab of a reloaded index shows its new generation', { skip }, async (t) => {
  const { url, holder } = await reloadedServer(t);
  const page = await open(`${url}/?tab=index`);
  await page.locator('.about', { hasText: 'Generation generation-1' }).waitFor();
  await page.click('#tab-trajectories');
  await page.waitForSelector('#panel-trajectories h1');
  await holder.slot('wiki').load();
  await page.click('#tab-index');
  await page.locator('.about', { hasText: 'Generation generation-3' }).waitFor();
});

test('the index tab of a group names its indexes, with links to their pages', { skip }, async (t) => {
  const { url } = await reloadedServer(t);
  const page = await open(`${url}/indexes/both/?tab=index`, PHONE);
  await page.waitForSelector('.about li');
  assert.equal(await page.isVisible('#error'), false);
  assert.deepEqual(await page.locator('.about li').allTextContents(), [
    'wiki: 5 passages, ranked by dense',
    'news: 5 passages, ranked by dense',
  ]);
  await assertFits(page);
  await page.click('.about li:last-child a');
  await page.waitForSelector('.histogram');
  assert.equal(await textOf(page, '#panel-index h1'), 'news');
});

test('passages of a record are shown with a warning if their index has another generation now', { skip }, async (t) => {
  const { url } = await reloadedServer(t);
  const { generation: group } = (await (await fetch(`${url}/indexes/both/readyz`)).json()) as { generation: string };
  const record = (trajectory: string, index: string, generation: string, more = ''): string =>
    `{"requestId":"a","index":"${index}","generation":"${generation}","trajectory":"${trajectory}","query":"q",` +
    `"rows":[2,3,0],"ids":[9007199254740993,null,"0"],"scores":[0.5,null,0.25]${more}}`;
  const members = ',"indexes":["news","wiki","news"]';
  const page = await open(`${url}/?tab=trajectories`);
  const lines = [
    record('same', 'wiki', 'generation-1'),
    record('changed', 'news', 'generation-0'),
    record('group', 'both', group, members),
    record('changed-group', 'both', 'generation-0', members),
    record('unnamed-group', 'wiki,news', 'generation-0', members),
  ];
  const file = { name: 'calls.jsonl', mimeType: 'application/json', buffer: Buffer.from(lines.join('\n')) };
  await page.setInputFiles('#rollout-file', file);
  const turnOf = async (number: number, name: string): Promise<string> => {
    await page.selectOption('#rollout', String(number));
    await page.locator('#panel-trajectories h2', { hasText: new RegExp(`^${name}$`) }).waitFor();
    return textOf(page, '.turn');
  };
  const same = await turnOf(0, 'same');
  assert.doesNotMatch(same, /generation/);
  assert.match(
    same,
    /id 9007199254740993 0\.5000.*Its id is beyond 2\^53.*row 3.*A text without a title.*id 0 0\.2500/s,
  );
  assert.doesNotMatch(same, /null|another passage/);
  assert.match(
    await turnOf(1, 'changed'),
    /news has changed since: it has generation generation-2, the record has generation-0\..*beyond 2\^53/s,
  );
  assert.doesNotMatch(await turnOf(2, 'group'), /generation/);
  assert.match(
    await turnOf(3, 'changed-group'),
    new RegExp(`both has changed since: it has generation ${group}, the record has generation-0`),
  );
  assert.match(
    await turnOf(4, 'unnamed-group'),
    /does not say whether wiki,news has changed since generation generation-0/,
  );
  assert.equal(await page.locator('.turn .notice').count(), 1, 'once for all passages of a turn');
});
