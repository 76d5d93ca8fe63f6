import { packageVersion } from '../../base/package-root.ts';
import type { Dialect } from '../dialects/dialect.ts';
import { getOperation, isDescribed, type Operation, otherOperation, postOperation } from './operations.ts';
import { componentName, ERROR_SCHEMA, type Json, plain, requestSchema } from './schemas.ts';

/** Describes the API in OpenAPI 3.1, from the schemas that requests are parsed with. */
export function openApiDocument(dialects: readonly Dialect[], operations: readonly Operation[]): Json {
  const schemas: Json = { Error: ERROR_SCHEMA };
  for (const { name, method, request, reply } of dialects.filter((dialect) => isDescribed(dialect, dialects))) {
    if (method === 'POST') schemas[`${componentName(name)}Request`] = requestSchema(request);
    schemas[`${componentName(name)}Reply`] = plain(reply);
  }
  const paths: Record<string, Json> = {};
  for (const operation of operations) {
    const { name, request, reply, path, method = 'get' } = operation;
    if (typeof reply !== 'string') schemas[`${componentName(name)}Reply`] = plain(reply);
    if (request !== undefined) schemas[`${componentName(name)}Request`] = requestSchema(request.schema);
    paths[path] = { [method]: otherOperation(operation) };
  }
  for (const path of new Set(dialects.map((dialect) => dialect.path))) {
    const here = dialects.filter((dialect) => dialect.path === path);
    const posted = here.filter(({ method }) => method === 'POST');
    paths[path.replace(/:(\w+)/g, '{$1}')] = {
      ...(posted.length === 0 ? {} : { post: postOperation(posted) }),
      ...Object.fromEntries(
        here.filter(({ method }) => method === 'GET').map((dialect) => ['get', getOperation(dialect)]),
      ),
    };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Trawl',
      version: packageVersion,
      summary: 'Exact dense retrieval for search agents',
      description: 'Several projects share POST /retrieve; the server recognises the format by the body.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    // {} because a server may require no key.
    security: [{}, { bearer: [] }],
    paths,
    components: {
      schemas,
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'An API key, if the server requires one.' },
      },
    },
  };
}
