import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { packageRoot } from '../../src/base/package-root.ts';
import { freePort } from '../cli/free-port.ts';
import { fileFolder, jsonOf, runTrawl, SAMPLE, SAMPLE_PASSAGES, serveIndex } from '../cli/run-trawl.ts';

const FOLDER = join(packageRoot, 'deploy', 'monitoring');
/** Seconds between readings, and readings that every rate covers. */
const [SCRAPE_S, SCRAPES] = [1, 6];

const skip =
  spawnSync('prometheus', ['--version']).error === undefined ? false : 'needs prometheus (apt-get install prometheus)';

interface Dashboard {
  readonly panels: readonly {
    readonly title: string;
    readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
  }[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition?: string }[] };
}

interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [number, string];
}

/** A Prometheus that reads the server, and itself as a process of another job. */
async function startPrometheus(t: TestContext, folder: string, target: string): Promise<string> {
  const port = await freePort();
  const config = {
    global: { scrape_interval: `${SCRAPE_S}s`, evaluation_interval: '1s' },
    rule_files: [join(FOLDER, 'alerts.yaml')],
    scrape_configs: [
      { job_name: 'trawl', static_configs: [{ targets: [target] }] },
      { job_name: 'prometheus', static_configs: [{ targets: [`127.0.0.1:${port}`] }] },
    ],
  };
  const file = join(folder, 'prometheus.yml');
  // JSON is YAML.
  await writeFile(file, JSON.stringify(config));
  const child = spawn(
    'prometheus',
    [
      `--config.file=${file}`,
      `--storage.tsdb.path=${join(folder, 'tsdb')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--log.level=error',
    ],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  t.after(async () => {
    child.kill('SIGTERM');
    if (child.exitCode === null) await once(child, 'close');
  });
  return `http://127.0.0.1:${port}`;
}

async function asked<T>(prometheus: string, path: string): Promise<T> {
  const response = await fetch(`${prometheus}/api/v1/${path}`);
  const body = (await response.json()) as { status: string; data: T; error?: string };
  assert.equal(body.status, 'success', `${path}: ${body.error}`);
  return body.data;
}

/** What clients do, good ones and bad ones, so that every counter of the dashboard counts. */
async function load(url: string): Promise<void> {
  const post = async (path: string, body: unknown): Promise<number> => {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
    await response.arrayBuffer();
    return response.status;
  };
  const fresh = (): string => `bridge ${Math.random()}`;
  const shared = fresh();
  await Promise.all([
    ...[shared, shared, 'a river', fresh(), 'castle '.repeat(400)].map((query) =>
      post('/retrieve', { queries: [query], topk: 3 }),
    ),
    post('/v1/search', { queries: [fresh()], mode: 'bm25' }),
    post('/v1/search', { queries: [fresh()], mode: 'hybrid' }),
    post('/retrieve', { queries: 3 }),
  ]);
}

test('every query of the dashboard has values of the servers alone in a Prometheus that reads one, and the rules are evaluated', {
  skip,
}, async (t) => {
  const folder = await fileFolder();
  const index = join(folder, 'sample');
  jsonOf(
    await runTrawl(['index', SAMPLE_PASSAGES, '--out', index, '--model', 'token-average-256', '--bm25', '--json']),
  );
  const gold = ['--perturb', 'delay=0.2', '--perturb-delay-ms', '1', '--perturb-gold', join(SAMPLE, 'questions.jsonl')];
  const { url } = await serveIndex(t, index, gold);
  const prometheus = await startPrometheus(t, folder, new URL(url).host);
  for (let scrapes = 0, tries = 0; scrapes < SCRAPES; tries++) {
    assert.ok(tries < 100, 'Prometheus has read the server');
    await load(url);
    // Two reloads, so that the counter of the first is there before it grows.
    if (scrapes === 1 || scrapes === 3) {
      const reload = await fetch(`${url}/admin/indexes/sample/reload`, { method: 'POST' });
      assert.equal(reload.status, 200, await reload.text());
    }
    await new Promise((resolve) => setTimeout(resolve, 500));
    const query = encodeURIComponent('count_over_time(up{job="trawl"}[10m])');
    const found = await asked<{ result: Sample[] }>(prometheus, `query?query=${query}`).catch(() => undefined);
    scrapes = Number(found?.result[0]?.value[1] ?? 0);
  }
  const { panels, templating } = JSON.parse(readFileSync(join(FOLDER, 'grafana-dashboard.json'), 'utf8')) as Dashboard;
  const instance = new URL(url).host;
  for (const { name, definition } of templating.list) {
    if (definition === undefined) continue;
    const [, metric, label] = /^label_values\((\w+), (\w+)\)$/.exec(definition)!;
    const values = await asked<string[]>(prometheus, `label/${label}/values?match[]=${metric}`);
    assert.deepEqual(values, [name === 'instance' ? instance : 'sample'], name);
  }
  const queries = panels.flatMap(({ title, targets = [] }) => targets.map((target) => ({ title, ...target })));
  assert.ok(queries.length > 20, String(queries.length));
  for (const { title, expr, legendFormat } of queries) {
    // As Grafana replaces its variables for the choice «All».
    const text = expr
      .replaceAll('$__rate_interval', `${30 * SCRAPE_S}s`)
      .replaceAll('$__range', '1m')
      .replaceAll(/\$(?:instance|index)\b/g, '.*');
    const { result } = await asked<{ result: Sample[] }>(prometheus, `query?query=${encodeURIComponent(text)}`);
    assert.ok(
      result.some(({ value }) => Number.isFinite(Number(value[1]))),
      `${title}: no value for ${text}`,
    );
    for (const { metric } of result) {
      if (metric.instance !== undefined) assert.equal(metric.instance, instance, `${title}: ${text}`);
      for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) {
        assert.ok(metric[label!] !== undefined, `${title}: ${label} of the legend is not a label of ${text}`);
      }
    }
  }
  const { groups } = await asked<{ groups: { rules: { name: string; health: string; lastError?: string }[] }[] }>(
    prometheus,
    'rules',
  );
  const rules = groups.flatMap((group) => group.rules);
  assert.ok(rules.length > 10);
  for (const { name, health, lastError } of rules) assert.equal(health, 'ok', `${name}: ${lastError}`);
  const { alerts } = await asked<{ alerts: { labels: { alertname: string } }[] }>(prometheus, 'alerts');
  assert.ok(
    alerts.some(({ labels }) => labels.alertname === 'TrawlPerturbs'),
    'the server perturbs',
  );
});
