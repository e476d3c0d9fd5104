# An image that runs `tartlet serve`: docker build -t tartlet .
FROM python:3.12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev make && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN make wheel

FROM python:3.12-slim
# The C kernels are compiled for the machine that they run on.
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/dist/*.whl /src/constraints.txt /wheels/
RUN version=$(sed -n 's/^torch==//p' /wheels/constraints.txt) \
    && pip install --no-cache-dir --index-url https://download.pytorch.org/whl/cpu "torch==$version" \
    && pip install --no-cache-dir --constraint /wheels/constraints.txt "$(ls /wheels/*.whl)[postgres]" \
    && rm -r /wheels \
    && useradd --system --create-home --home-dir /var/lib/tartlet tartlet

USER tartlet
ENV TARTLET_HOME=/var/lib/tartlet TARTLET_HOST=0.0.0.0
VOLUME /var/lib/tartlet
EXPOSE 8000
STOPSIGNAL SIGTERM
# Not readiness: who restarts what is unhealthy should not do so while the front has a new engine load its model.
HEALTHCHECK --start-period=10m CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/health/live')"]
ENTRYPOINT ["tartlet", "serve"]
