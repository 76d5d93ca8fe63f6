import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { Operation } from '../api-docs/openapi.ts';
import { modelIds, modelNotFound, openaiEmbeddings } from '../dialects/openai-embeddings.ts';
import { chosenIndex } from '../indexes/index-choice.ts';
import type { IndexRegistry } from '../indexes/index-registry.ts';

export const MODEL_ROUTE = '/v1/models/:model';

const Model = Type.Object({
  id: Type.String({ description: 'A value for `model` of POST /v1/embeddings.' }),
  object: Type.Literal('model'),
  created: Type.Integer({ description: 'Unix time in seconds at which the server opened the index.' }),
  owned_by: Type.String(),
});

const ModelsReply = Type.Object({ object: Type.Literal('list'), data: Type.Array(Model) });

export const MODELS_OPERATIONS: readonly Operation[] = [
  {
    path: '/v1/models',
    name: 'models',
    summary: "Models for POST /v1/embeddings, in the format of OpenAI's API",
    access: 'read',
    reply: ModelsReply,
  },
  {
    path: '/v1/models/{model}',
    name: 'model',
    summary: "One model, in the format of OpenAI's API",
    access: 'read',
    parameters: [{ name: 'model', description: 'The id of a model.', example: 'token-average-256-query' }],
    reply: Model,
  },
];

/** `GET /v1/models` and `GET /v1/models/{model}`, from which OpenAI's clients and chat UIs offer a choice of models. */
export function registerModels(app: FastifyInstance, holder: IndexRegistry): void {
  const config = { onlyDialect: openaiEmbeddings };
  app.get('/v1/models', { config }, async (request): Promise<Static<typeof ModelsReply>> => {
    return { object: 'list', data: modelsFor(request, holder) };
  });
  app.get<{ Params: { model: string } }>(MODEL_ROUTE, { config }, async (request) => {
    const { model: id } = request.params;
    const all = modelsFor(request, holder);
    const ids = all.map((each) => each.id);
    const model = all[ids.indexOf(id)];
    if (model === undefined) throw modelNotFound(id, ids);
    return model;
  });
}

/** The models of the index that the request names, or of all indexes: three ids for each encoder (`modelIds`), also if several indexes use it. */
function modelsFor(request: FastifyRequest, holder: IndexRegistry): Static<typeof Model>[] {
  holder.requireReady();
  const index = chosenIndex(request);
  const slots = index === undefined ? holder.slots : holder.slotsOf(index);
  const models = new Map<string, Static<typeof Model>>();
  for (const { retriever, openedAt } of slots) {
    const model = retriever?.info.model;
    // An index without vectors has no encoder.
    if (model == null) continue;
    for (const id of modelIds(model.name)) {
      if (models.has(id)) continue;
      models.set(id, { id, object: 'model', created: Math.floor(openedAt / 1000), owned_by: 'trawl' });
    }
  }
  return [...models.values()];
}
