import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { packageRoot } from '../../../src/base/package-root.ts';
import { DIALECTS } from '../../../src/server/dialects/dispatch.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { build } from '../build.ts';

const REDOCLY = join(packageRoot, 'node_modules', '@redocly', 'cli', 'bin', 'cli.js');

interface Document {
  readonly openapi: string;
  readonly paths: Record<string, Record<string, { operationId: string; requestBody?: unknown }>>;
  readonly components: { schemas: Record<string, { required?: string[]; properties?: Record<string, unknown> }> };
}

interface Content {
  readonly content: {
    readonly 'application/json': { readonly schema: { readonly anyOf: readonly { $ref: string }[] } };
  };
}

test('the API’s description passes a linter', async (t) => {
  const file = join(await tempFolder(t), 'openapi.json');
  await writeFile(file, (await build(t).inject('/docs/openapi.json')).payload);
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', CI: 'true' };
  // Health routes have no 4xx.
  const args = [REDOCLY, 'lint', file, '--format=json', '--skip-rule=operation-4xx-response'];
  const run = await promisify(execFile)(process.execPath, args, { env, cwd: await tempFolder(t) }).catch(
    (error: { stdout: string; stderr: string }) => error,
  );
  const { problems } = JSON.parse(run.stdout) as { problems: { message: string; location: { pointer: string }[] }[] };
  assert.deepEqual(
    problems.map(({ message, location }) => `${location[0]?.pointer}: ${message}`),
    [],
  );
});

test('the API’s description has every dialect and route, and no other', async (t) => {
  const app = build(t);
  await app.ready();
  const document = (await app.inject('/docs/openapi.json')).json<Document>();
  assert.equal(document.openapi, '3.1.0');
  const ids = new Set<string>();
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, { operationId }] of Object.entries(methods)) {
      assert.ok(
        app.hasRoute({
          method: method.toUpperCase() as 'GET',
          url: path.replace('{path}', '*').replace(/\{(\w+)\}/g, ':$1'),
        }),
        path,
      );
      assert.ok(!ids.has(operationId), operationId);
      ids.add(operationId);
    }
  }
  const described = new Set(
    Object.keys(document.paths).map((path) => path.replace('{path}', '*').replace(/\{(\w+)\}/g, ':$1')),
  );
  for (const { path } of DIALECTS) assert.ok(described.has(path), path);
  for (const path of ['/livez', '/readyz', '/health', '/healthz', '/v1/indexes', '/v1/passages/:id']) {
    assert.ok(described.has(path), path);
  }
});

test('a field with a default is not required', async (t) => {
  const { schemas } = (await build(t).inject('/docs/openapi.json')).json<Document>().components;
  assert.deepEqual(schemas.SearchR1Request?.required, ['queries']);
  assert.deepEqual(schemas.SearchagentXRequest?.required, ['prompts', 'top_k']);
  assert.equal(schemas.RllmLegacyRequest?.required, undefined);
});

test('on a shared path no schema matches every object', async (t) => {
  const { paths, components } = (await build(t).inject('/docs/openapi.json')).json<Document>();
  const operation = paths['/retrieve']!.post as unknown as {
    requestBody: Content;
    responses: Record<string, Content>;
  };
  for (const { content } of [operation.requestBody, operation.responses[200]!]) {
    const forms = content['application/json'].schema.anyOf;
    assert.ok(forms.length > 5);
    for (const { $ref } of forms) {
      const { properties, anyOf, items } = components.schemas[$ref.split('/').at(-1)!] as Record<string, object>;
      assert.ok(Object.keys(properties ?? anyOf ?? items ?? {}).length > 0, $ref);
    }
  }
});

test('/docs is a page without scripts that names every route and field', async (t) => {
  const app = build(t);
  const { statusCode, payload, headers } = await app.inject('/docs');
  assert.equal(statusCode, 200);
  assert.match(String(headers['content-type']), /^text\/html/);
  assert.match(String(headers['content-security-policy']), /default-src 'self'/);
  assert.doesNotMatch(payload, /<script|undefined|\[object/);
  const headings = [...payload.matchAll(/<h[23][^>]*>([^<]*)/g)].map(([, heading]) => heading);
  assert.deepEqual(headings.slice(0, 2), ['POST /retrieve', 'search-r1'], 'what most clients send comes first');
  assert.ok(!headings.includes('elasticsearch'), 'no form that can only be refused');
  for (const { method, path, request } of DIALECTS) {
    assert.ok(payload.includes(`${method} ${path.replace(/:(\w+)/g, '{$1}')}`), path);
    const { properties, anyOf } = request as { properties?: object; anyOf?: readonly { properties?: object }[] };
    for (const name of Object.keys(properties ?? anyOf?.[0]?.properties ?? {})) {
      assert.ok(payload.includes(`<code>${name}</code>`), `${path} ${name}`);
    }
  }
});
