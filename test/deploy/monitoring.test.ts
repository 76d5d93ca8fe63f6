import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { TrawlError } from '../../src/base/errors.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { ServerMetrics } from '../../src/server/metrics/server-metrics.ts';
import { Perturbation } from '../../training/perturbation/perturbation.ts';
import { perturbationSettings } from '../../training/perturbation/settings.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { eventually, serve } from '../server/build.ts';

const FOLDER = join(packageRoot, 'deploy', 'monitoring');
const ALERTS = readFileSync(join(FOLDER, 'alerts.yaml'), 'utf8');
/** The alerts without the texts for people. */
const EXPRESSIONS = ALERTS.replaceAll(/^\s*(?:#|summary:|description:).*$/gm, '');
const DASHBOARD = JSON.parse(readFileSync(join(FOLDER, 'grafana-dashboard.json'), 'utf8')) as { panels: Panel[] };

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string; readonly refId: string }[];
}

/** How prometheus-adapter asks for the metric of the autoscaler, with its placeholders filled in for one Pod. */
const ADAPTER = readFileSync(join(FOLDER, 'kubernetes-adapter.yaml'), 'utf8');
const [, SERIES] = /^ {4}- seriesQuery: (\w+)\{namespace!="",pod!=""\}$/m.exec(ADAPTER)!;
const AUTOSCALING = /^ {6}metricsQuery: (.*)$/m
  .exec(ADAPTER)![1]!
  .replaceAll('<<.GroupBy>>', 'pod')
  .replaceAll('<<.Series>>', SERIES!)
  .replaceAll('<<.LabelMatchers>>', 'namespace="search",pod=~"trawl-1"');

const QUERIES = DASHBOARD.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })));

/** promtool is part of Prometheus. */
const withoutPromtool =
  spawnSync('promtool', ['--version']).error === undefined ? false : 'needs promtool (Debian: prometheus)';

/** Names of time series with the names of their labels. */
function seriesOf(text: string): Map<string, Set<string>> {
  const series = new Map<string, Set<string>>();
  for (const line of text.split('\n')) {
    const [, name, labels = ''] = /^(\w+)(?:\{(.*)\})? /.exec(line) ?? [];
    if (name === undefined) continue;
    const known = series.get(name) ?? new Set();
    for (const [, label] of labels.matchAll(/(\w+)="/g)) known.add(label!);
    series.set(name, known);
  }
  return series;
}

test('alerts and dashboard only ask for time series and labels that a server has', async (t) => {
  let failing = false;
  const retriever = new FakeRetriever({
    before: () => {
      if (failing) throw new TrawlError('OVERLOADED', 'x');
    },
  });
  const { app, url } = await serve(t, retriever, {
    metrics: new ServerMetrics({ process: true }),
    searchHook: new Perturbation(perturbationSettings({ distractors: 0.1 }, { distractors: 1 })),
  });
  const ask = (): Promise<Response> =>
    fetch(`${url}/retrieve`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', connection: 'close' },
      body: '{"queries":["a"]}',
    });
  await (await ask()).text();
  failing = true;
  await (await ask()).text();
  let text = '';
  await eventually(() => {
    void app.inject('/metrics').then(({ payload }) => {
      text = payload;
    });
    return text.includes('status="503"') && text.includes('trawl_errors_total{');
  });
  const series = seriesOf(text);
  // Prometheus gives these to every series, in a cluster with the names of the Pod.
  const added = new Set(['job', 'instance', 'namespace', 'pod']);
  let uses = 0;
  for (const { title, expr } of [
    ...QUERIES,
    { title: 'alerts.yaml', expr: EXPRESSIONS },
    { title: 'kubernetes-adapter.yaml', expr: AUTOSCALING },
  ]) {
    for (const [, name, selector = ''] of expr.matchAll(/\b((?:trawl|process|nodejs)_\w+)(?:\{([^}]*)\})?/g)) {
      // The record's counter begins with --record.
      if (name === 'trawl_dropped_lines_total') continue;
      const labels = series.get(name!) ?? assert.fail(`${title}: the server has no ${name}`);
      for (const [, label] of selector.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"/g)) {
        assert.ok(labels.has(label!) || added.has(label!), `${title}: ${name} has no label ${label}`);
      }
      uses++;
    }
  }
  assert.ok(uses > 40, String(uses));
});

test('panels of the dashboard have their own ids, places, queries and descriptions', () => {
  const { panels } = DASHBOARD;
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
  const cells = new Map<string, string>();
  for (const { title, gridPos, targets, description } of panels) {
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        assert.equal(cells.get(`${x} ${y}`), undefined, `${title} covers another panel`);
        cells.set(`${x} ${y}`, title);
      }
      assert.ok(x < 24, `${title} is outside of the page`);
    }
    if (targets === undefined) continue;
    assert.ok(description !== undefined && description.length > 10, `${title} has no description`);
    assert.equal(new Set(targets.map(({ refId }) => refId)).size, targets.length, title);
  }
});

test('the adapter gives the autoscaler its metric, of the Pods that Prometheus reads', () => {
  const kubernetes = join(FOLDER, '..', 'kubernetes');
  const autoscaler = readFileSync(join(kubernetes, 'autoscale.yaml'), 'utf8');
  assert.ok(autoscaler.includes(`metric: { name: ${SERIES} }`));
  assert.ok(ADAPTER.includes(`name: { as: ${SERIES} }`));
  const scrape = readFileSync(join(FOLDER, 'kubernetes-scrape.yaml'), 'utf8');
  const [, name, component, port] = /^ {8}regex: (.+);(.+);(.+)$/m.exec(scrape)!;
  const server = readFileSync(join(kubernetes, 'serve.yaml'), 'utf8');
  assert.ok(server.includes(`labels: { app.kubernetes.io/name: ${name}, app.kubernetes.io/component: ${component} }`));
  assert.ok(server.includes(`- { name: ${port}, containerPort: 8000 }`));
  for (const label of ['namespace', 'pod']) {
    assert.match(scrape, new RegExp(`target_label: ${label} \\}$`, 'm'));
    assert.ok(ADAPTER.includes(`${label}: { resource: ${label} }`));
  }
});

test('Prometheus reads the alerts and the queries of the dashboard', { skip: withoutPromtool }, (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'trawl-test-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const rules = [...QUERIES, { expr: AUTOSCALING }].map(({ expr }, i) => ({
    record: `q${i}`,
    // Grafana replaces its own variables before it asks.
    expr: expr
      .replaceAll(/\$__(?:rate_interval|range)/g, '5m')
      .replaceAll('$instance', '.*')
      .replaceAll('$index', '.*'),
  }));
  // JSON is YAML.
  const file = join(folder, 'dashboard.yaml');
  writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }));
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'rules', join(FOLDER, 'alerts.yaml'), file], {
    encoding: 'utf8',
  });
  assert.equal(status, 0, stdout + stderr);
  // Debian's promtool knows no Kubernetes, where the servers are found.
  const scrape = readFileSync(join(FOLDER, 'kubernetes-scrape.yaml'), 'utf8');
  const here = join(folder, 'scrape.yaml');
  const elsewhere = scrape.replace('kubernetes_sd_configs: [{ role: pod }]', 'static_configs: []');
  assert.notEqual(elsewhere, scrape);
  writeFileSync(here, elsewhere.replace('[alerts.yaml]', JSON.stringify([join(FOLDER, 'alerts.yaml')])));
  const config = spawnSync('promtool', ['check', 'config', here], { encoding: 'utf8' });
  assert.equal(config.status, 0, config.stdout + config.stderr);
});

test('the alerts fire when they should, and only then', { skip: withoutPromtool }, () => {
  const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', join(FOLDER, 'alerts.test.yaml')], {
    encoding: 'utf8',
  });
  assert.equal(status, 0, stdout + stderr);
});

test('the autoscaler counts the queue of an encoder once, although several indexes share it', {
  skip: withoutPromtool,
}, (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'trawl-test-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const waiting = [
    ['trawl-1', 'wiki', 'embed', 30],
    ['trawl-1', 'news', 'embed', 30],
    ['trawl-1', 'wiki', 'search', 10],
    ['trawl-1', 'news', 'search', 4],
    ['trawl-2', 'wiki', 'embed', 99],
  ] as const;
  const tests = [
    {
      interval: '1m',
      input_series: waiting.map(([pod, index, stage, queries]) => ({
        series: `trawl_queue_queries{namespace="search",pod="${pod}",index="${index}",stage="${stage}"}`,
        values: `${queries}x5`,
      })),
      promql_expr_test: [
        { expr: AUTOSCALING, eval_time: '3m', exp_samples: [{ labels: '{pod="trawl-1"}', value: 40 }] },
      ],
    },
  ];
  const file = join(folder, 'adapter.test.yaml');
  writeFileSync(file, JSON.stringify({ rule_files: [], tests }));
  const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' });
  assert.equal(status, 0, stdout + stderr);
});

test('docs/operations.md says what to do about every alert, and knows no other', () => {
  const alerts = [...ALERTS.matchAll(/alert: (\w+)/g)].map(([, name]) => name!);
  const documented = [
    ...readFileSync(join(packageRoot, 'docs', 'operations.md'), 'utf8').matchAll(/^\| `(Trawl\w+)` \|/gm),
  ].map(([, name]) => name!);
  assert.deepEqual(documented, alerts);
});
