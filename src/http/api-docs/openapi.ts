import type { TSchema } from 'typebox';
import { packageVersion } from '../../package-root.ts';
import type { Access } from '../access/access.ts';
import type { Dialect } from '../dialects/dialect.ts';
import { VIEW_HEADER } from '../indexes/view-choice.ts';

/** A route that does not belong to a dialect. */
export interface Operation {
  /** Default: get. */
  readonly method?: 'get' | 'post';
  /** In OpenAPI's notation, with parameters in braces. */
  readonly path: string;
  readonly name: string;
  readonly summary: string;
  readonly access: Access;
  readonly parameters?: readonly { readonly name: string; readonly description: string; readonly example: string }[];
  readonly request?: { readonly schema: TSchema; readonly required: boolean; readonly example: object };
  /** Schema of the JSON response, or `text`. */
  readonly reply: TSchema | 'text' | 'bytes';
  /** Whether it answers 200 even while the server starts and stops. */
  readonly always?: boolean;
  /** Descriptions of further error statuses. */
  readonly errors?: Readonly<Record<string, string>>;
}

type Json = Record<string, unknown>;

/** Errors of all POST routes. */
const ERRORS: Readonly<Record<string, string>> = {
  413: 'The body is too large, or there are too many queries.',
  415: 'The content type is not JSON.',
  422: 'The body is not JSON, or a field is missing or has a wrong value.',
  500: 'The server or one of the queries failed.',
  503: 'The server is starting, stopping or overloaded, or the time limit has passed; retry-after has the seconds to wait.',
};

const INDEX_PARAMETER: Json = {
  name: 'index',
  in: 'query',
  required: false,
  schema: { type: 'string' },
  description:
    'Name of the index. Absent: the default index. The prefix /indexes/NAME of the path does the same. A prefix /views/NAME limits the request to a view.',
};

/** Headers of the responses of routes that return passages. */
const VIEW_HEADERS: Json = {
  [VIEW_HEADER]: {
    description: 'The views that limited the request, with commas in between. Absent if there are none.',
    schema: { type: 'string' },
  },
};

const KEY_ERRORS: Readonly<Record<string, string>> = {
  401: 'The API key is missing or not valid for this server.',
};

const ERROR_SCHEMA: Json = {
  type: 'object',
  properties: {
    detail: { description: 'As in FastAPI: a list of faults, or a phrase.' },
    error: {
      type: 'object',
      properties: {
        code: { type: 'string', description: 'A stable code, listed in docs/errors.md.' },
        message: { type: 'string' },
      },
      required: ['code', 'message'],
    },
  },
  required: ['error'],
};

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

/** Omits dialects without fields (which the server always refuses) from a shared path: their schemas would match any body. */
function isDescribed({ path, request }: Dialect, dialects: readonly Dialect[]): boolean {
  const { properties = {} } = request as { properties?: object };
  return (
    Object.keys(properties).length > 0 || dialects.every((other) => other.request === request || other.path !== path)
  );
}

function postOperation(dialects: readonly Dialect[]): Json {
  const [first] = dialects;
  const described = dialects.filter((dialect) => isDescribed(dialect, dialects));
  const parameters = [...(first?.path ?? '').matchAll(/:(\w+)/g)].map(([, name]) => pathParameter(name!, '', 'x'));
  parameters.push(INDEX_PARAMETER);
  const responses: Json = {
    200: {
      ...jsonContent('The response.', anyOf(described.map(({ name }) => `${componentName(name)}Reply`))),
      headers: VIEW_HEADERS,
    },
  };
  const statuses = {
    ...KEY_ERRORS,
    404: 'Index or model not found.',
    ...ERRORS,
    501: 'The index or the server does not support it.',
    ...otherStatuses(dialects),
  };
  for (const [status, description] of Object.entries(statuses))
    responses[status] = jsonContent(description, ref('Error'));
  return {
    operationId: dialects.length === 1 ? operationId(first!.name) : operationId(first!.path.slice(1)),
    summary:
      dialects.length === 1 ? first!.summary : 'Requests in the formats of several projects, recognised by the body',
    description: dialects
      .map(({ name, summary, onlyIfNamed }) => `- ${name}: ${summary}${named(onlyIfNamed)}`)
      .join('\n'),
    parameters,
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: anyOf(described.map(({ name }) => `${componentName(name)}Request`)),
          examples: Object.fromEntries(
            described.map(({ name, summary, onlyIfNamed, example }) => [
              name,
              { summary: `${summary}${named(onlyIfNamed)}`, value: example },
            ]),
          ),
        },
      },
    },
    responses,
  };
}

/** The operation of a dialect whose fields are parameters of the URL. */
function getOperation({ name, summary, request, example, statuses }: Dialect): Json {
  const { properties, required = [] } = requestSchema(request) as {
    properties: Record<string, Json>;
    required?: readonly string[];
  };
  const parameters = Object.entries(properties).map(([field, { description, ...schema }]) => ({
    name: field,
    in: 'query',
    required: required.includes(field),
    schema,
    description,
    example: example[field],
  }));
  const { 413: _large, 415: _type, ...errors } = ERRORS;
  const responses: Json = {
    200: { ...jsonContent('The response.', ref(`${componentName(name)}Reply`)), headers: VIEW_HEADERS },
  };
  const described = {
    ...KEY_ERRORS,
    404: 'Index not found.',
    413: 'The query is too long.',
    ...errors,
    501: 'The index or the server does not support it.',
    ...Object.fromEntries(Object.values(statuses).map((status) => [String(status), 'The request is not valid.'])),
  };
  for (const [status, description] of Object.entries(described)) {
    responses[status] = jsonContent(description, ref('Error'));
  }
  return { operationId: operationId(name), summary, parameters: [...parameters, INDEX_PARAMETER], responses };
}

function named(onlyIfNamed: boolean): string {
  return onlyIfNamed ? ' (only with --dialect and this name)' : '';
}

function otherStatuses(dialects: readonly Dialect[]): Record<string, string> {
  const others = dialects.flatMap(({ statuses }) => Object.values(statuses));
  return Object.fromEntries(
    others.map((status) => [String(status), status === 501 ? 'Not supported.' : 'The request is not valid.']),
  );
}

function otherOperation(operation: Operation): Json {
  const { name, summary, access, parameters = [], request, reply, always = false, errors = {} } = operation;
  const isPlain = reply === 'text' || reply === 'bytes';
  const answer = isPlain ? { type: 'string' } : ref(`${componentName(name)}Reply`);
  const refusals: Readonly<Record<string, string>> = {
    ...(access === 'open' ? {} : KEY_ERRORS),
    ...(access === 'admin' ? { 403: 'An admin key is required.' } : {}),
    ...(parameters.length === 0 ? {} : { 404: 'Not found.' }),
    ...(request === undefined ? {} : { 413: ERRORS[413]!, 415: ERRORS[415]!, 422: ERRORS[422]! }),
    ...errors,
    ...(always ? {} : { 503: ERRORS[503]! }),
  };
  return {
    operationId: operationId(name),
    summary,
    ...(access === 'open' ? { security: [] } : {}),
    ...(parameters.length === 0
      ? {}
      : { parameters: parameters.map((each) => pathParameter(each.name, each.description, each.example)) }),
    ...(request === undefined
      ? {}
      : {
          requestBody: {
            required: request.required,
            content: {
              'application/json': {
                schema: ref(`${componentName(name)}Request`),
                examples: { [name]: { value: request.example } },
              },
            },
          },
        }),
    responses: {
      200:
        reply === 'text' || reply === 'bytes'
          ? textContent('The response.', answer, reply === 'bytes')
          : jsonContent('The response.', answer),
      ...Object.fromEntries(
        Object.entries(refusals).map(([status, description]) => [
          status,
          jsonContent(description, access === 'open' ? { type: 'object' } : ref('Error')),
        ]),
      ),
    },
  };
}

function textContent(description: string, schema: Json, isBinary: boolean): Json {
  return { description, content: { [isBinary ? 'application/octet-stream' : 'text/plain']: { schema } } };
}

function pathParameter(name: string, description: string, example: string): Json {
  return { name, in: 'path', required: true, schema: { type: 'string' }, description, example };
}

function jsonContent(description: string, schema: Json): Json {
  return { description, content: { 'application/json': { schema } } };
}

function anyOf(names: readonly string[]): Json {
  return names.length === 1 ? ref(names[0]!) : { anyOf: names.map(ref) };
}

function ref(name: string): Json {
  return { $ref: `#/components/schemas/${name}` };
}

/** `rllm-legacy` → `RllmLegacy`. */
function componentName(name: string): string {
  return name.replaceAll(/(?:^|-)(\w)/g, (_match, letter: string) => letter.toUpperCase());
}

function operationId(name: string): string {
  const joined = componentName(name.replaceAll(/\W+/g, '-'));
  return joined.charAt(0).toLowerCase() + joined.slice(1);
}

/** Makes fields with a default optional. The schemas describe the parsed request, in which they are always present. */
function requestSchema(schema: TSchema): Json {
  return withOptionalDefaults(plain(schema)) as Json;
}

function withOptionalDefaults(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(withOptionalDefaults);
  if (typeof node !== 'object' || node === null) return node;
  const copy = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, withOptionalDefaults(value)]));
  const properties = copy.properties as Record<string, Json> | undefined;
  if (properties === undefined || !Array.isArray(copy.required)) return copy;
  const required = (copy.required as string[]).filter((name) => !('default' in (properties[name] ?? {})));
  if (required.length === 0) delete copy.required;
  else copy.required = required;
  return copy;
}

/** A plain copy, without the properties that typebox adds. */
function plain(schema: TSchema): Json {
  return JSON.parse(JSON.stringify(schema)) as Json;
}
